"""Saves what is readable of a damaged journal: intact rows are sent on, the rest is declared lost.

The damaged file itself is renamed and kept. A copy of it is read, because opening it would change
it; rows are fetched by halving ranges around what cannot be read, and each is held to its checksum.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from approvaltrail.producer.database import JournalDatabase
from approvaltrail.producer.directory import JournalPath, create_private, sync_directory
from approvaltrail.producer.reading import intact_rows, missing_ranges
from approvaltrail.producer.state import JournalState
from approvaltrail.schemas.messages import SequenceRange

if TYPE_CHECKING:
    from approvaltrail.producer.database import Statement
    from approvaltrail.producer.lock import Hint

_REASON: Final = "the journal was damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged:
    """What came of a damaged journal."""

    aside: Path
    """Where the damaged file is kept."""
    events: int
    """Intact events that were not delivered yet."""
    lost: tuple[SequenceRange, ...]


def salvage(path: JournalPath, hint: Hint, fallback: JournalState) -> Salvaged:
    """Replace a damaged journal by one that holds its intact, undelivered events.

    Args:
        path: the damaged journal, locked by this process and not open.
        hint: what the lock's file says of its numbers.
        fallback: the state to assume where the journal's own is unreadable.
    """
    with tempfile.TemporaryDirectory(dir=path.file.parent, prefix=".salvage-") as work:
        copy = _copied(path, Path(work))
        database = _opened(copy)
        state = _state(database, hint, fallback)
        rows = (
            list(intact_rows(database, state.relayed_sequence, state.last_sequence))
            if database
            else []
        )
        last = max([state.last_sequence, *(row[0] for row in rows)])
        lost = missing_ranges(rows, state.relayed_sequence, last, _REASON)
        seals = _seals(database, state.relayed_seal)
        if database:
            database.close()
    path.salvaged.unlink(missing_ok=True)
    create_private(path.salvaged)
    state = dataclasses.replace(
        state,
        retired=1,
        inode=os.stat(path.salvaged).st_ino,  # noqa: PTH116
        last_sequence=last,
        sealed_sequence=last,  # a segment with holes has no root
        last_recorded_at=max([state.last_recorded_at, *(row[1] for row in rows)]),
    )
    _build(path.salvaged, state, rows, seals, lost)
    aside = path.set_aside()
    path.salvaged.rename(path.file)
    sync_directory(path.file.parent)
    return Salvaged(aside=aside, events=len(rows), lost=lost)


def _copied(path: JournalPath, work: Path) -> JournalPath:
    copy = JournalPath(file=work / path.file.name, producer_id=path.producer_id)
    shutil.copyfile(path.file, copy.file)
    if path.wal.exists():
        shutil.copyfile(path.wal, copy.wal)
    return copy


def _opened(copy: JournalPath) -> JournalDatabase | None:
    with contextlib.suppress(sqlite3.Error):
        database = JournalDatabase.open_to_build(copy.file)
        database.first_sequence()
        return database
    with contextlib.suppress(sqlite3.Error):
        # the log itself may be what cannot be read: what stands in the file counts then
        copy.wal.unlink(missing_ok=True)
        return JournalDatabase.open_to_build(copy.file)
    return None


def _state(database: JournalDatabase | None, hint: Hint, fallback: JournalState) -> JournalState:
    state = fallback
    if database:
        with contextlib.suppress(sqlite3.Error, TypeError):
            state = database.state_row()
    with contextlib.suppress(sqlite3.Error):
        last = database.last_event()[0] if database else 0
        state = dataclasses.replace(state, last_sequence=max(state.last_sequence, last))
    relayed = max(state.relayed_sequence, hint.relayed_sequence)
    return dataclasses.replace(
        state,
        producer_id=fallback.producer_id,
        relayed_sequence=relayed,
        last_sequence=max(state.last_sequence, hint.last_sequence, relayed),
    )


def _seals(database: JournalDatabase | None, after: int) -> list[tuple[int, int, bytes]]:
    with contextlib.suppress(sqlite3.Error):
        if database:
            return database.unsent_seals(after)
    return []


def _build(
    file: Path,
    state: JournalState,
    rows: list[tuple[Any, ...]],
    seals: list[tuple[int, int, bytes]],
    lost: tuple[SequenceRange, ...],
) -> None:
    statements: list[Statement] = [("INSERT INTO events VALUES (?,?,?,?,?)", row) for row in rows]
    statements += [("INSERT INTO seals VALUES (?,?,?)", seal) for seal in seals]
    statements += [
        (
            "INSERT INTO lost VALUES (?,?,?)",
            (entry.first_sequence, entry.last_sequence, entry.reason),
        )
        for entry in lost
    ]
    database = JournalDatabase.open_to_build(file)
    try:
        database.create(state, statements)
    finally:
        database.close()
