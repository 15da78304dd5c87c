"""What a journal knows of itself: the one row of its `state` table."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

from approvaltrail.producer.seals import NO_SEAL

_TYPES: Final = {"str": "TEXT NOT NULL", "int": "INTEGER NOT NULL", "str | None": "TEXT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalState:
    """Identity, numbering and progress of one journal. Times are µs since the epoch."""

    producer_id: str
    service: str
    instance: str
    machine: str
    """The machine on which the journal was made; elsewhere it is not continued."""
    inode: int
    """The file's inode when it was made: a copy is not continued either."""
    created_at: int
    previous_producer_id: str | None = None
    retired: int = 0
    """1: takes no events any more, it is only sent on."""
    last_sequence: int = 0
    """A floor: events beyond it may exist. It keeps the count when delivered events are deleted."""
    last_recorded_at: int = 0
    relayed_sequence: int = 0
    """The broker acknowledged every number up to this one."""
    seal_number: int = 0
    sealed_sequence: int = 0
    seal_digest: str = NO_SEAL
    relayed_seal: int = 0
    repaired_at: int = 0
    """The time of the last request for repair that was served."""
    probes: int = 0
    """Written to find out whether the disk takes writes again."""


COLUMNS: Final = tuple(field.name for field in dataclasses.fields(JournalState))


def table() -> str:
    """Return the statement that makes the state table."""
    columns = [
        f"{field.name} {_TYPES[str(field.type)]}" for field in dataclasses.fields(JournalState)
    ]
    listed = ", ".join(columns)
    return (
        f"CREATE TABLE state (only_row INTEGER PRIMARY KEY CHECK (only_row = 0), {listed}) STRICT"
    )


def state_of(row: tuple[Any, ...]) -> JournalState:
    """Build the state from its row, in the order of `COLUMNS`."""
    return JournalState(**dict(zip(COLUMNS, row, strict=True)))
