"""Avro passthrough: many encoded events become one block for the store, none of them decoded.

A message is a header (in either framing) and a record's bytes. The record is
put, as it is, between a few fields of our own, and the whole under one Avro object container file
(Avro 1.12 specification, "Object Container Files") whose schema is the writer's with those fields
around it: `kafka_partition`, `kafka_offset`, …the event…, `fence`.

Bytes that are not what they claim would shift every record after them. The **fence** keeps the
framing sound: a random number of the batch ends each record, and the insert checks it on every
row. Records can only all end on it if each began and ended where we put it, and nobody outside
this process can know it beforehand. (A union branch that the schema does not have is read as null
by the engine: a lax value in a sound frame.)
"""

from __future__ import annotations

import copy
import functools
import io
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import fastavro

from approvaltrail.schemas.contract import Contract
from approvaltrail.schemas.encoding import varint

PARTITION_FIELD: Final = "kafka_partition"
OFFSET_FIELD: Final = "kafka_offset"
FENCE_FIELD: Final = "fence"
_SYNC: Final = b"approvaltrail-01"
"""Sixteen bytes after the header and the block. Fixed: the fence, not this, guards the framing."""
_LOW_BITS: Final = 14
_LOW_MASK: Final = (1 << _LOW_BITS) - 1
_SMALLEST_FENCE: Final = 1 << 62


class Message(Protocol):
    """What a block needs of a Kafka message."""

    @property
    def partition(self) -> int:
        """The partition it came from."""

    @property
    def offset(self) -> int:
        """Its position there."""

    @property
    def value(self) -> bytes | None:
        """The encoded event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Events of one schema, ready to be inserted."""

    contract: Contract
    """The schema that all of them were written with."""
    fence: int
    """What the insert has to find in the last field of every record."""
    data: bytes
    """The Avro container file."""
    events: int


def new_fence() -> int:
    """Draw a fence: 62 random bits under a leading one, so that it always takes ten bytes."""
    return secrets.randbits(62) | _SMALLEST_FENCE


class BlockBuilder:
    """Builds blocks of one contract in one framing; the container's header never changes."""

    def __init__(self, contract: Contract, header: bytes | None = None) -> None:
        """Take the contract, and the header of its messages where it is not the contract's own."""
        self.contract = contract
        self._header_bytes = len(header or contract.header)
        self._header = _file_header(contract.schema)

    def build(self, messages: Iterable[Message]) -> Block:
        """Put messages that begin with this builder's header into one block.

        The offset is written as two precomputed bytes (its 14 low bits) and a high part that
        changes once in 8,192 offsets. For small offsets that is a longer varint than need be,
        which every Avro reader takes.
        """
        fence = new_fence()
        lows = _low_parts()
        partition, start, last_high, high_part = -1, b"", -1, b""
        records: list[bytes] = []
        add, header_bytes = records.append, self._header_bytes
        for message in messages:
            if message.partition != partition:
                partition = message.partition
                start = varint(partition)
            zigzag = message.offset << 1
            high = zigzag >> _LOW_BITS
            if high != last_high:
                last_high, high_part = high, _unsigned_varint(high)
            record = message.value[header_bytes:]  # type: ignore[index] # sorted: has a header
            add(start + lows[zigzag & _LOW_MASK] + high_part + record)
        data = self._container(records, varint(fence))
        return Block(contract=self.contract, fence=fence, data=data, events=len(records))

    def single_object(self, message: Message) -> bytes:
        """Return a message's event as its journal holds it, whatever framing it came in."""
        value = message.value or b""
        if value.startswith(self.contract.header):
            return value
        return self.contract.header + value[self._header_bytes :]

    def _container(self, records: list[bytes], separator: bytes) -> bytes:
        body = separator.join(records) + separator
        counts = varint(len(records)) + varint(len(body))
        return b"".join((self._header, counts, body, _SYNC))


def wrapped_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a writer's schema with our fields around its own."""
    wrapped = copy.deepcopy(schema)
    wrapped["fields"] = [
        {"name": PARTITION_FIELD, "type": "int"},
        {"name": OFFSET_FIELD, "type": "long"},
        *wrapped["fields"],
        {"name": FENCE_FIELD, "type": "long"},
    ]
    return wrapped


def _file_header(schema: dict[str, Any]) -> bytes:
    """Return a container's header: magic, wrapped schema, sync marker."""
    stream = io.BytesIO()
    parsed = fastavro.parse_schema(wrapped_schema(schema))
    fastavro.writer(stream, parsed, [], codec="null", sync_marker=_SYNC)
    return stream.getvalue()


@functools.cache
def _low_parts() -> tuple[bytes, ...]:
    """Return the first two bytes of a varint by its 14 low bits, both saying "more follows"."""
    return tuple(bytes((low & 0x7F | 0x80, low >> 7 | 0x80)) for low in range(1 << _LOW_BITS))


def _unsigned_varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
