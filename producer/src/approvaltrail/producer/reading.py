"""Reads rows around damage: what is whole comes out, and what is missing is named."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Final

from approvaltrail.producer.database import checksum
from approvaltrail.schemas.messages import SequenceRange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from approvaltrail.producer.database import JournalDatabase

JournalRow = tuple[Any, ...]
"""(sequence, recorded_at in µs, checksum, key, body), as `JournalDatabase.rows` gives it."""
_CHUNK: Final = 512
_OUTSIDE: Final = (
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_FULL",
    "SQLITE_CANTOPEN",
    "SQLITE_READONLY",
    "SQLITE_PERM",
    "SQLITE_NOMEM",
    "SQLITE_IOERR",
)
_UNREADABLE: Final = ("SQLITE_IOERR_READ", "SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_CORRUPTFS")
"""Of the errors of the disk, those that say that a part of the file cannot be had."""


def is_intact(row: JournalRow) -> bool:
    """Say whether a row is what was written."""
    _, _, expected, key, body = row
    whole = isinstance(body, bytes) and (key is None or isinstance(key, bytes))
    return whole and checksum(body, key) == expected


def is_damage(error: sqlite3.Error) -> bool:
    """Say whether an error is damage in the file, which no retry mends."""
    name = getattr(error, "sqlite_errorname", "") or ""
    return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def is_outside(error: sqlite3.Error) -> bool:
    """Say whether an error says nothing about the file: its disk, its rights, who else has it."""
    name = getattr(error, "sqlite_errorname", "") or ""
    return name.startswith(_OUTSIDE) and not name.startswith(_UNREADABLE)


def intact_rows(database: JournalDatabase, after: int, last: int) -> Iterator[JournalRow]:
    """Return the intact rows of a range in order, halving it around what cannot be read.

    The work is bounded: a number is asked for at most once in each size of range.
    """
    for first in range(after + 1, last + 1, _CHUNK):
        ranges = [(first, min(first + _CHUNK - 1, last))]
        while ranges:
            low, high = ranges.pop()
            try:
                rows = database.rows(low - 1, high, _CHUNK)
            except sqlite3.Error:
                if low < high:
                    middle = (low + high) // 2
                    ranges += [(middle + 1, high), (low, middle)]
                continue
            yield from (row for row in rows if low <= row[0] <= high and is_intact(row))


def missing_ranges(
    rows: Sequence[JournalRow], after: int, last: int, reason: str
) -> tuple[SequenceRange, ...]:
    """Return the ranges of numbers after one and up to another that these rows do not hold."""
    missing: list[SequenceRange] = []
    expected = after + 1
    for sequence in [*(row[0] for row in rows), last + 1]:
        if sequence > expected:
            missing.append(
                SequenceRange(first_sequence=expected, last_sequence=sequence - 1, reason=reason)
            )
        expected = sequence + 1
    return tuple(missing)
