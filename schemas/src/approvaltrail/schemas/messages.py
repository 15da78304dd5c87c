"""The messages beside events: heartbeats, seals, repair requests, and dead letters' headers."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Self

import fastavro
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from approvaltrail.schemas import bounds
from approvaltrail.schemas.contract import HEADER_BYTES, Contract, contract
from approvaltrail.schemas.errors import UndecodableError
from approvaltrail.schemas.events import Digest, Identity, Instant
from approvaltrail.schemas.identity import UUID_PATTERN

Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Text = Annotated[str, Field(min_length=1, max_length=bounds.INSTANCE)]


class ProducerState(StrEnum):
    """Whether a journal still takes events."""

    LIVE = "live"
    CLOSED = "closed"
    """Closed in order: `last_sequence` is final."""


class GateState(StrEnum):
    """Whether the gate beside the producer may issue and accept."""

    OPEN = "open"
    CLOSED = "closed"


class Probe(StrEnum):
    """What the last look at the ledger said."""

    OK = "ok"
    FAILING = "failing"
    NONE = "none"
    """There is no ledger, or it was not looked at yet."""


class Message(BaseModel):
    """Base: encodes itself in single-object encoding under its contract."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    contract_name: ClassVar[str]

    @classmethod
    def contract(cls) -> Contract:
        """Return the Avro contract of this message."""
        return contract(cls.contract_name)

    def encode(self) -> bytes:
        """Return the message in single-object encoding."""
        stream = io.BytesIO()
        stream.write(self.contract().header)
        fastavro.schemaless_writer(stream, self.contract().parsed, self._record())
        return stream.getvalue()

    def _record(self) -> dict[str, Any]:
        return self.model_dump(mode="python")

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Decode strictly.

        Raises:
            UndecodableError: the bytes are not one message of this kind.
        """
        known = cls.contract()
        if data[:HEADER_BYTES] != known.header:
            raise UndecodableError("unknown_schema", f"not a {cls.contract_name} message")
        stream = io.BytesIO(data)
        stream.seek(HEADER_BYTES)
        try:
            values: Any = fastavro.schemaless_reader(stream, known.parsed, None)
            message = cls(**cls._values(values))
        except ValidationError:
            raise UndecodableError("invalid_value", f"breaks {cls.contract_name}") from None
        except Exception as error:  # noqa: BLE001 - as the bytes lead fastavro
            text = f"not a record of {cls.contract_name}: {type(error).__name__}"
            raise UndecodableError("undecodable", text) from None
        if stream.tell() != len(data):
            raise UndecodableError("undecodable", f"bytes follow the {cls.contract_name} record")
        return message

    @classmethod
    def _values(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {
            name: str(value) if name.endswith("producer_id") and value is not None else value
            for name, value in values.items()
        }


class SequenceRange(BaseModel):
    """A range of sequence numbers, both ends included, and what is known of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    first_sequence: Annotated[int, Field(ge=1)]
    last_sequence: Annotated[int, Field(ge=1)]
    reason: Annotated[str, Field(min_length=1, max_length=200)]


class Heartbeat(Message):
    """What a producer says of itself every few seconds, and once more when it closes."""

    contract_name: ClassVar[str] = "heartbeat.v1"

    producer_id: Identity
    service: Text
    instance: Text
    sent_at: Instant
    started_at: Instant
    """When the process opened the journal."""
    state: ProducerState
    last_sequence: Count
    """Highest number recorded so far; 0 before the first event."""
    last_recorded_at: Instant | None = None
    relayed_sequence: Count = 0
    """Every number up to this one was acknowledged by the broker."""
    pending: Count = 0
    """Recorded and not yet acknowledged by the broker."""
    journal_bytes: Count = 0
    journal_limit_bytes: Count = 0
    gate_state: GateState = GateState.OPEN
    gate_reason: Annotated[str, Field(max_length=200)] | None = None
    unrecorded_refusals: Count = 0
    """Refusals counted while the journal was unavailable and not yet recorded."""
    scrubbed_values: Count = 0
    """Values from which a token was removed since the start."""
    ledger_probe: Probe = Probe.NONE
    ledger_probe_at: Instant | None = None
    previous_producer_id: Identity | None = None
    """The journal that this one follows, when a damaged or foreign one was set aside."""
    lost_ranges: tuple[SequenceRange, ...] = ()
    """Numbers of this journal that no one can send any more, by damage: declared, never green."""


class Seal(Message):
    """A closed segment of a journal: its range and the root over its events' bytes."""

    contract_name: ClassVar[str] = "seal.v1"

    producer_id: Identity
    seal_number: Annotated[int, Field(ge=1)]
    """1, 2, 3, … without gaps within one journal."""
    first_sequence: Annotated[int, Field(ge=1)]
    last_sequence: Annotated[int, Field(ge=1)]
    merkle_root: Digest
    """RFC 6962 Merkle tree hash over the events' single-object bytes, in order."""
    previous_seal_digest: Digest
    """SHA-256 over the encoded previous seal; 64 zeros before the first."""
    sealed_at: Instant
    signature: Annotated[str, Field(max_length=200)] | None = None
    signing_key_id: Annotated[str, Field(max_length=64)] | None = None


class RepairRequest(Message):
    """Asks whoever holds a journal to send a range again."""

    contract_name: ClassVar[str] = "repair_request.v1"

    producer_id: Identity
    first_sequence: Annotated[int, Field(ge=1)]
    last_sequence: Annotated[int, Field(ge=1)]
    requested_at: Instant


class DeadLetterCause(StrEnum):
    """Why a message cannot be stored."""

    EMPTY = "empty"
    BAD_FRAMING = "bad_framing"
    UNKNOWN_SCHEMA = "unknown_schema"
    UNDECODABLE = "undecodable"
    INVALID_VALUE = "invalid_value"
    TIME_OUT_OF_RANGE = "time_out_of_range"
    REFUSED_BY_STORE = "refused_by_store"


_IDENTITY: Final = re.compile(UUID_PATTERN.encode())
_NUMBER: Final = re.compile(rb"[0-9]{1,19}")
HEADER_PRODUCER_ID: Final = "producer_id"
HEADER_SEQUENCE: Final = "sequence"
"""Kafka headers of every event (ASCII text), so that an undecodable value still has an owner."""
HEADER_CAUSE: Final = "dead_letter_cause"
HEADER_DETAIL: Final = "dead_letter_detail"
HEADER_TOPIC: Final = "dead_letter_topic"
HEADER_PARTITION: Final = "dead_letter_partition"
HEADER_OFFSET: Final = "dead_letter_offset"
HEADER_AT: Final = "dead_letter_at"
"""Kafka headers of a dead letter beside the original ones; key and value are the original's."""


def event_headers(producer_id: str, sequence: int) -> list[tuple[str, bytes]]:
    """Return the Kafka headers of an event."""
    return [
        (HEADER_PRODUCER_ID, producer_id.encode()),
        (HEADER_SEQUENCE, str(sequence).encode()),
    ]


def owner_of(headers: Iterable[tuple[str, bytes | None]]) -> tuple[str, int] | None:
    """Read producer id and sequence from a message's headers, or None where they say nothing.

    Whoever may write to the topic writes them: anything may stand there, also nothing.
    """
    found = dict(headers)
    producer_id, sequence = found.get(HEADER_PRODUCER_ID), found.get(HEADER_SEQUENCE)
    if not producer_id or not sequence or not _NUMBER.fullmatch(sequence):
        return None
    if not _IDENTITY.fullmatch(producer_id):
        return None
    return producer_id.decode("ascii"), int(sequence)
