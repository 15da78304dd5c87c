"""Chooses the journal of a start: a free one of this service before a new one, and what to send on.

- A sound journal of this machine that no process holds is resumed, its numbering included.
- Others like it with undelivered events are adopted: sent on and closed.
- One from another machine, or a copied file, is sent on and retired: its original may still grow.
- A damaged one is set aside; what is readable of it is sent on, what is not is declared lost.
"""

from __future__ import annotations

import dataclasses
import os
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog

from approvaltrail.producer.errors import JournalInUseError
from approvaltrail.producer.lock import JournalLock
from approvaltrail.producer.log_events import Log
from approvaltrail.producer.opened import (
    OpenedJournal,
    create_journal,
    open_database,
    open_existing,
    opened_journal,
)
from approvaltrail.producer.reading import is_outside
from approvaltrail.producer.salvage import salvage
from approvaltrail.producer.state import JournalState
from approvaltrail.producer.torn_tail import torn_frames
from approvaltrail.schemas.identity import new_producer_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from approvaltrail.producer.directory import JournalDirectory, JournalPath
    from approvaltrail.producer.settings import ProducerSettings

_MOST_ADOPTED: Final = 16
"""More journals left behind wait for the next start: each costs a thread and a connection."""

_TORN: Final = "a transaction cut short by a crash; nobody was told that it had succeeded"

log = structlog.get_logger("approvaltrail.producer")


@dataclass(slots=True)
class Chosen:
    """The journals of a start."""

    active: OpenedJournal
    adopted: list[OpenedJournal] = field(default_factory=list)
    is_new: bool = False
    """The active journal was made by this start."""

    def give_back(self) -> None:
        """Leave the directory as it was found, for a start that failed after all."""
        for opened in self.adopted:
            opened.give_back()
        self.active.database.close()
        if self.is_new:
            self.active.path.remove()  # before its lock is free for another process
        self.active.lock.release()


class Resumption:
    """One start's look through the directory."""

    def __init__(
        self,
        directory: JournalDirectory,
        settings: ProducerSettings,
        *,
        machine: str,
        clock: Callable[[], int],
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._machine = machine
        self._clock = clock
        self._active: OpenedJournal | None = None
        self._adopted: list[OpenedJournal] = []
        self._previous: str | None = None
        self._any_service = False

    def choose(self) -> Chosen:
        """Lock and open this start's journals; errors as `JournalDatabase.open`."""
        self._look_through(self._directory.journals(self._settings.service))
        if self._active:
            return Chosen(self._active, self._adopted)
        try:
            path = self._directory.new_path(self._settings.service, new_producer_id())
            return Chosen(self._create(path, None), self._adopted, is_new=True)
        except BaseException:
            for opened in self._adopted:
                opened.give_back()
            raise

    def adopt_all(self) -> list[OpenedJournal]:
        """Lock and open every free journal of every service that has something to send."""
        self._any_service = True
        self._look_through(self._directory.every_journal())
        return self._adopted

    def _look_through(self, paths: list[JournalPath]) -> None:
        self._directory.finish_salvages()
        try:
            for path in paths:
                try:
                    lock = JournalLock.acquire(path.lock)
                except JournalInUseError:
                    continue
                except OSError as error:
                    _skip(path, error.strerror or type(error).__name__)
                    continue
                try:
                    self._place(path, lock)
                except sqlite3.Error as error:
                    lock.release()
                    _skip(path, getattr(error, "sqlite_errorname", type(error).__name__))
                except BaseException:
                    lock.release()
                    raise
        except BaseException:
            for opened in [*self._adopted, *([self._active] if self._active else [])]:
                opened.give_back()
            raise

    def _place(self, path: JournalPath, lock: JournalLock) -> None:
        hint = lock.hint()
        if not path.file.exists():  # another process has just removed it
            lock.release()
            return
        opened, damage = self._look(path, lock)
        if opened is None and damage is None:
            if self._active is None and not self._any_service:
                self._active = self._create(path, lock)
            else:
                lock.release()
            return
        if opened is None:
            fallback = self._new_state(path.producer_id)
            saved = salvage(path, hint, dataclasses.replace(fallback, retired=1))
            log.error(
                Log.JOURNAL_DAMAGED,
                journal=str(path.file),
                damage=damage,
                set_aside_as=str(saved.aside),
                events_saved=saved.events,
                lost=[(entry.first_sequence, entry.last_sequence) for entry in saved.lost],
            )
            opened = open_existing(path, lock, self._settings)
        self._assign(opened)

    def _assign(self, opened: OpenedJournal) -> None:
        state = opened.state
        foreign = state.machine != self._machine or state.inode != _inode(opened)
        if foreign and not state.retired:
            opened.database.run([("UPDATE state SET retired = 1", ())])
            opened = dataclasses.replace(opened, state=dataclasses.replace(state, retired=1))
        retired = bool(opened.state.retired)
        if retired:
            self._previous = state.producer_id
        if not retired and self._active is None and not self._any_service:
            # the numbering goes on; the instance is the one that writes from now on
            state = dataclasses.replace(opened.state, instance=self._settings.instance)
            self._active = dataclasses.replace(opened, state=state)
            self._say_resumed(opened)
        elif _undelivered(opened) and len(self._adopted) < _MOST_ADOPTED:
            self._adopted.append(opened)
            log.warning(
                Log.JOURNAL_ADOPTED,
                journal=str(opened.path.file),
                pending=state.last_sequence - state.relayed_sequence,
                retired=retired,
                foreign=foreign,
            )
        elif retired and not _undelivered(opened) and self._expired(state):
            opened.database.close()
            opened.path.remove()
            opened.lock.release()
            log.info(Log.JOURNAL_EXPIRED, journal=str(opened.path.file))
        else:
            opened.give_back()

    def _look(
        self, path: JournalPath, lock: JournalLock
    ) -> tuple[OpenedJournal | None, str | None]:
        """Return the journal if it is sound, else its damage; neither if it was never made."""
        hint = lock.hint()
        database = None
        try:
            database = open_database(path, self._settings)
            new, damage = database.is_new(), database.quick_check()
            if new and not damage:
                damage = "the file is empty" if hint.last_sequence else None
            elif not damage:
                damage = self._mismatch(database.state(), path, hint.last_sequence)
                damage = damage or database.holes(
                    database.state_row().relayed_sequence, database.state().last_sequence
                )
            if not new and not damage:
                return opened_journal(path, lock, database), None
        except (sqlite3.Error, TypeError) as error:
            if isinstance(error, sqlite3.Error) and is_outside(error):
                if database:
                    database.close()
                raise  # the file may be sound: setting it aside would lose its numbers
            damage = f"SQLite cannot read it: {error}"
        if database:
            database.close()
        return None, damage

    def _mismatch(self, state: JournalState, path: JournalPath, hinted: int) -> str | None:
        known = self._any_service or state.service == self._settings.service
        if state.producer_id != path.producer_id or not known:
            return "its name and its content belong to different journals"
        if hinted > state.last_sequence:
            return (
                f"it ends at event {state.last_sequence}, although {hinted} events had been "
                "recorded: its tail is missing"
            )
        return None

    def _create(self, path: JournalPath, lock: JournalLock | None) -> OpenedJournal:
        lock = lock or JournalLock.acquire(path.lock)
        opened = create_journal(path, lock, self._settings, self._new_state(path.producer_id))
        log.info(Log.JOURNAL_CREATED, journal=str(path.file), producer_id=path.producer_id)
        return opened

    def _new_state(self, producer_id: str) -> JournalState:
        return JournalState(
            producer_id=producer_id,
            service=self._settings.service,
            instance=self._settings.instance,
            machine=self._machine,
            inode=0,
            created_at=self._clock(),
            previous_producer_id=self._previous,
        )

    def _expired(self, state: JournalState) -> bool:
        hours = self._settings.journal_retention_hours
        return state.last_recorded_at < self._clock() - hours * 3_600_000_000

    def _say_resumed(self, opened: OpenedJournal) -> None:
        state = opened.state
        torn = torn_frames(opened.path.wal, opened.database.log_frames())
        log.info(
            Log.JOURNAL_RESUMED,
            journal=str(opened.path.file),
            producer_id=state.producer_id,
            last_sequence=state.last_sequence,
            pending=state.last_sequence - state.relayed_sequence,
            torn_frames=torn,
            discarded=_TORN if torn else None,
        )


def _skip(path: JournalPath, error: str) -> None:
    log.error(Log.JOURNAL_SKIPPED, journal=str(path.file), error=error)


def _inode(opened: OpenedJournal) -> int:
    return os.stat(opened.path.file).st_ino  # noqa: PTH116


def _undelivered(opened: OpenedJournal) -> bool:
    state = opened.state
    return (
        state.last_sequence > state.relayed_sequence
        or state.seal_number > state.relayed_seal
        or state.last_sequence > state.sealed_sequence
    )
