"""The Avro contracts as data: parsed schemas, their fingerprints, and every version ever written.

Single-object encoding (Avro 1.12 specification, "Single-object encoding"): two marker bytes, the
schema's CRC-64-AVRO fingerprint little-endian, then the record's binary encoding. So it stands in
journals and under seals. On the wire the same record may stand behind Confluent's header instead: a
zero byte and the schema's id in a registry, big-endian.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

import fastavro

MARKER: Final = b"\xc3\x01"
HEADER_BYTES: Final = 10
"""Marker and fingerprint."""
CONFLUENT_MAGIC: Final = b"\0"
CONFLUENT_HEADER_BYTES: Final = 5
"""Magic byte and id."""
EVENT_VERSIONS: Final = ("approval_event.v1",)
"""Every version of the event contract that a producer may have written, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """One version of one message: its name, schema and single-object header."""

    name: str
    schema: dict[str, Any]
    """The schema as it stands in its file."""
    parsed: Any
    """The schema as fastavro takes it."""
    fingerprint: str
    """CRC-64-AVRO of the canonical form, 16 hex digits, in the byte order of the header."""
    header: bytes
    """The ten bytes before every encoded record."""


def confluent_header(number: int) -> bytes:
    """Return Confluent's header for the schema that a registry knows by this id."""
    return CONFLUENT_MAGIC + number.to_bytes(CONFLUENT_HEADER_BYTES - 1, "big")


def registry_id_of(header: bytes) -> int:
    """Return the id that Confluent's header names."""
    return int.from_bytes(header[1:], "big")


def header_of(value: bytes) -> bytes | None:
    """Return the header of a message in either framing; None if it begins as neither does."""
    if value.startswith(MARKER) and len(value) >= HEADER_BYTES:
        return value[:HEADER_BYTES]
    if value.startswith(CONFLUENT_MAGIC) and len(value) >= CONFLUENT_HEADER_BYTES:
        return value[:CONFLUENT_HEADER_BYTES]
    return None


@functools.cache
def contract(name: str) -> Contract:
    """Load a contract by its file name without `.avsc`, such as `approval_event.v1`."""
    text = resources.files(__package__).joinpath("avro", f"{name}.avsc").read_text("utf-8")
    return contract_of(name, json.loads(text))


def contract_of(name: str, schema: dict[str, Any]) -> Contract:
    """Build a contract from a schema; tests use it for versions that do not exist yet."""
    canonical = fastavro.schema.to_parsing_canonical_form(schema)
    # fastavro gives the fingerprint's hexadecimal digits in little-endian byte order
    fingerprint = fastavro.schema.fingerprint(canonical, "CRC-64-AVRO")
    return Contract(
        name=name,
        schema=schema,
        parsed=fastavro.parse_schema(schema),
        fingerprint=fingerprint,
        header=MARKER + bytes.fromhex(fingerprint),
    )


@functools.cache
def event_contract() -> Contract:
    """Return the newest event contract: the one that producers write."""
    return contract(EVENT_VERSIONS[-1])


@functools.cache
def event_contracts() -> dict[bytes, Contract]:
    """Return every event contract by its single-object header."""
    return {version.header: version for version in map(contract, EVENT_VERSIONS)}
