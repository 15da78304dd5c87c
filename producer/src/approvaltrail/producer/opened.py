"""Opens and makes journal files; the caller holds the lock, and keeps it in what is returned."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from approvaltrail.producer.database import JournalDatabase
from approvaltrail.producer.directory import create_private, sync_directory
from approvaltrail.producer.lock import Hint, JournalLock
from approvaltrail.producer.state import JournalState
from approvaltrail.schemas.messages import SequenceRange

if TYPE_CHECKING:
    from approvaltrail.producer.directory import JournalPath
    from approvaltrail.producer.settings import ProducerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedJournal:
    """A journal's file, locked and open, with what it says of itself."""

    path: JournalPath
    lock: JournalLock
    database: JournalDatabase
    state: JournalState
    lost: tuple[SequenceRange, ...] = ()

    def write_hint(self, last_sequence: int, relayed_sequence: int) -> None:
        """Leave a hint of how far the journal has come."""
        hint = Hint(last_sequence=last_sequence, relayed_sequence=relayed_sequence)
        self.lock.write_hint(hint)

    def give_back(self) -> None:
        """Close the file and free the lock, unchanged."""
        self.database.close()
        self.lock.release()


def open_database(path: JournalPath, settings: ProducerSettings) -> JournalDatabase:
    """Open a journal's file with this producer's bounds; errors as `JournalDatabase.open`."""
    return JournalDatabase.open(
        path,
        limit_bytes=settings.journal_limit_bytes,
        checkpoint_pages=settings.journal_checkpoint_pages,
    )


def open_existing(
    path: JournalPath, lock: JournalLock, settings: ProducerSettings
) -> OpenedJournal:
    """Open a journal that was found sound; errors as `JournalDatabase.open`."""
    return opened_journal(path, lock, open_database(path, settings))


def opened_journal(
    path: JournalPath, lock: JournalLock, database: JournalDatabase
) -> OpenedJournal:
    """Read what an open file says of itself.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    ranges = database.lost_ranges()
    return OpenedJournal(
        path=path,
        lock=lock,
        database=database,
        state=database.state(),
        lost=tuple(
            SequenceRange(first_sequence=first, last_sequence=last, reason=reason)
            for first, last, reason in ranges
        ),
    )


def create_journal(
    path: JournalPath, lock: JournalLock, settings: ProducerSettings, state: JournalState
) -> OpenedJournal:
    """Make a new journal; `state` says all but the file's inode.

    Raises:
        OSError: it cannot be made; nothing of it is left.
        sqlite3.Error: likewise.
    """
    try:
        return _created(path, lock, settings, state)
    except BaseException:
        path.remove()
        lock.release()
        raise


def _created(
    path: JournalPath, lock: JournalLock, settings: ProducerSettings, state: JournalState
) -> OpenedJournal:
    create_private(path.file)
    sync_directory(path.file.parent)
    database = open_database(path, settings)
    values = {name: getattr(state, name) for name in state.__slots__}
    values["inode"] = os.stat(path.file).st_ino  # noqa: PTH116
    try:
        database.create(JournalState(**values))
        sync_directory(path.file.parent)
        return OpenedJournal(path=path, lock=lock, database=database, state=database.state())
    except BaseException:
        database.close()
        raise
