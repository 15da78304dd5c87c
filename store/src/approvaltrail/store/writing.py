"""Writing: a guarded block of events, and the pipeline's own messages.

Every insert may run twice, or run and be told failed: identities, not inserts, decide what counts.
An insert that spans months may also store some of them and then fail. So an insert is repeated
until it succeeds.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from approvaltrail.schemas.contract import event_contracts
from approvaltrail.schemas.encoding import microseconds
from approvaltrail.store.columns import (
    EVENT_COLUMNS,
    KAFKA_COLUMNS,
    TEXT_COLUMNS,
    TIME_COLUMNS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from approvaltrail.schemas.messages import DeadLetterCause, Heartbeat, Seal
    from approvaltrail.store.answers import TimeRange
    from approvaltrail.store.connection import Store

MAXIMUM_BLOCK_EVENTS: Final = 1_048_449
"""A bigger block would be stored in several steps, and a bad one leave part of it behind."""
_ONE_BLOCK: Final[dict[str, int | str]] = {
    "max_insert_block_size": MAXIMUM_BLOCK_EVENTS,
    "min_insert_block_size_rows": MAXIMUM_BLOCK_EVENTS,
    "min_insert_block_size_bytes": 268_402_944,
    "async_insert": 0,
    # A replicated table that recognises a repeated block would skip the views as well, which may
    # have missed it the first time.
    "insert_deduplicate": 0,
    # Repeats within a block go when parts are merged, as those of different blocks do: to look for
    # them at each insert costs a tenth of the engine's work.
    "optimize_on_insert": 0,
}
_SMALL: Final[dict[str, int | str]] = {"async_insert": 0, "insert_deduplicate": 0}
_MAXIMUM_SEQUENCE: Final = 2**63 - 1
_FIRST: Final = microseconds(datetime.min.replace(tzinfo=UTC))
_LAST: Final = microseconds(datetime.max.replace(tzinfo=UTC))
"""The first and the last microsecond of the calendar: nobody could read an event beyond them."""


def insert_events(
    store: Store, block: bytes, fence: int, fingerprint: str, times: TimeRange | None = None
) -> None:
    """Insert one Avro container block of events of one schema; all of it, or (bad) none of it.

    Each record of the block is the event's fields in the order of its contract, then
    `kafka_partition` (int), `kafka_offset` (long) and `fence` (long). The engine refuses the block
    when a record does not end on the fence (its bytes were not one event), when a text is not
    UTF-8, a sequence not positive, `occurred_at` outside of `times`, or any time in no calendar.

    Raises:
        StoreRefusedError: nothing of the block is stored (see its note on months).
        StoreUnavailableError: the block is stored in part, in full, or not at all: insert it again.
    """
    parameters: dict[str, Any] = {"fence": fence, "fingerprint": fingerprint}
    if times is not None:
        parameters |= {"earliest": times.start, "latest": times.end}
    statement = _insert_statement(fingerprint, times is not None)
    store.command(statement, data=block, settings=_ONE_BLOCK, parameters=parameters)


@functools.cache
def _insert_statement(fingerprint: str, timed: object) -> str:
    columns = [*_columns_of(fingerprint), *KAFKA_COLUMNS]
    names = ", ".join(name for name, _ in columns)
    structure = _quoted(", ".join(f"{name} {kind}" for name, kind in columns) + ", fence Int64")
    checks = ["fence != {fence:Int64}", f"NOT ({_all_utf8(dict(columns))})"]
    checks.append(f"sequence < 1 OR sequence > {_MAXIMUM_SEQUENCE}")
    checks += [
        f"toUnixTimestamp64Micro({_present(name, kind)}) NOT BETWEEN {_FIRST} AND {_LAST}"
        for name, kind in columns
        if name in TIME_COLUMNS
    ]
    if timed:
        bounds = (
            "{earliest:DateTime64(6, 'UTC')}",
            "{latest:DateTime64(6, 'UTC')}",
        )
        checks.append(f"occurred_at < {bounds[0]} OR occurred_at >= {bounds[1]}")
    guard = " OR ".join(f"({check})" for check in checks)
    return (
        f"INSERT INTO events ({names}, schema_fingerprint) "  # noqa: S608 - from our own contract
        f"SELECT {names}, {{fingerprint:String}} FROM input({structure}) "
        f"WHERE NOT throwIf({guard}, 'this block is not what it says') FORMAT Avro"
    )


def _columns_of(fingerprint: str) -> list[tuple[str, str]]:
    """Return the columns that a version of the contract fills; the others take their defaults."""
    for known in event_contracts().values():
        if known.fingerprint == fingerprint:
            fields = {field["name"] for field in known.schema["fields"]}
            return [column for column in EVENT_COLUMNS if column[0] in fields]
    raise ValueError(f"no event contract has fingerprint {fingerprint}")


def _present(name: str, kind: str) -> str:
    return f"ifNull({name}, toDateTime64(0, 6, 'UTC'))" if "Nullable" in kind else name


def _all_utf8(columns: Mapping[str, str]) -> str:
    # One text with a separator: bytes of neighbours cannot complete each other's characters.
    texts = ", '\\0', ".join(
        f"ifNull({name}, '')" if "Nullable" in columns[name] else name
        for name in TEXT_COLUMNS
        if name in columns
    )
    pairs = "arrayAll(pair -> isValidUTF8(pair.1) AND isValidUTF8(pair.2), attributes)"
    return f"isValidUTF8(concat({texts})) AND {pairs}"


def insert_heartbeats(store: Store, heartbeats: Iterable[Heartbeat]) -> None:
    """Store heartbeats; each is known by its producer and time, so twice is once."""
    _insert(
        store,
        "heartbeats",
        _HEARTBEAT_COLUMNS,
        [heartbeat.model_dump(mode="python") for heartbeat in heartbeats],
    )


def insert_seals(store: Store, seals: Iterable[Seal]) -> None:
    """Store seals; two different seals of one number are both kept."""
    _insert(store, "seals", _SEAL_COLUMNS, [seal.model_dump(mode="python") for seal in seals])


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterRow:
    """A message that could not be stored, by its position in the topic of events."""

    topic: str
    partition: int
    offset: int
    cause: DeadLetterCause
    detail: str
    """Never a byte of the message."""
    producer_id: str | None
    sequence: int | None
    """Producer and sequence as the headers claim."""
    dead_lettered_at: datetime
    redriven_at: datetime | None = None


def insert_dead_letters(store: Store, letters: Iterable[DeadLetterRow]) -> None:
    """Store dead letters; of two with one position, the one re-driven last holds."""
    rows = []
    for letter in letters:
        redriven_at = letter.redriven_at
        version = 0 if redriven_at is None else int(redriven_at.timestamp() * 1_000_000)
        rows.append(
            {
                "topic": letter.topic,
                "partition": letter.partition,
                "offset": letter.offset,
                "cause": letter.cause.value,
                "detail": letter.detail,
                "producer_id": letter.producer_id,
                "sequence": _bounded(letter.sequence),
                "dead_lettered_at": letter.dead_lettered_at,
                "redriven_at": redriven_at,
                "version": version,
            }
        )
    _insert(store, "dead_letters", _DEAD_LETTER_COLUMNS, rows)


def retire_producer(
    store: Store, producer_id: str, *, reason: str, retired_by: str, retired_at: datetime
) -> None:
    """Declare that a producer will not be heard from again; its gaps stay what they are."""
    row = {
        "producer_id": producer_id,
        "reason": reason,
        "retired_by": retired_by,
        "retired_at": retired_at,
    }
    _insert(store, "retired_producers", _RETIRED_COLUMNS, [row])


def _bounded(sequence: int | None) -> int | None:
    return sequence if sequence is not None and 1 <= sequence <= _MAXIMUM_SEQUENCE else None


_TIME: Final = "DateTime64(6, 'UTC')"
_HEARTBEAT_COLUMNS: Final = {
    "producer_id": "UUID",
    "service": "String",
    "instance": "String",
    "sent_at": _TIME,
    "started_at": _TIME,
    "state": "String",
    "last_sequence": "UInt64",
    "last_recorded_at": f"Nullable({_TIME})",
    "relayed_sequence": "UInt64",
    "pending": "UInt64",
    "journal_bytes": "UInt64",
    "journal_limit_bytes": "UInt64",
    "gate_state": "String",
    "gate_reason": "Nullable(String)",
    "unrecorded_refusals": "UInt64",
    "scrubbed_values": "UInt64",
    "ledger_probe": "String",
    "ledger_probe_at": f"Nullable({_TIME})",
    "previous_producer_id": "Nullable(UUID)",
    "lost_ranges": "Array(Tuple(first_sequence UInt64, last_sequence UInt64, reason String))",
}
_SEAL_COLUMNS: Final = {
    "producer_id": "UUID",
    "seal_number": "UInt64",
    "first_sequence": "UInt64",
    "last_sequence": "UInt64",
    "merkle_root": "String",
    "previous_seal_digest": "String",
    "sealed_at": _TIME,
    "signature": "Nullable(String)",
    "signing_key_id": "Nullable(String)",
}
_DEAD_LETTER_COLUMNS: Final = {
    "topic": "String",
    "partition": "Int32",
    "offset": "Int64",
    "cause": "String",
    "detail": "String",
    "producer_id": "Nullable(String)",
    "sequence": "Nullable(UInt64)",
    "dead_lettered_at": _TIME,
    "redriven_at": f"Nullable({_TIME})",
    "version": "UInt64",
}
_RETIRED_COLUMNS: Final = {
    "producer_id": "UUID",
    "reason": "String",
    "retired_by": "String",
    "retired_at": _TIME,
}


def _insert(
    store: Store, table: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]
) -> None:
    if not rows:
        return
    names = ", ".join(columns)
    structure = _quoted(", ".join(f"{name} {kind}" for name, kind in columns.items()))
    data = "\n".join(json.dumps(row, default=_json_value) for row in rows)
    store.command(
        f"INSERT INTO {table} ({names}) SELECT {names} FROM input({structure}) "  # noqa: S608
        "FORMAT JSONEachRow",
        data=data.encode(),
        settings=_SMALL,
    )


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a zone-less time means nothing to the store; give an aware one")
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    raise TypeError(f"no way to store a {type(value).__name__}")


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
