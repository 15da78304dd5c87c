"""Looking at journals from outside, and sending on what a stopped server left in them."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from approvaltrail.producer.database import JournalDatabase
from approvaltrail.producer.directory import JournalDirectory
from approvaltrail.producer.errors import JournalDirectoryError, JournalInUseError
from approvaltrail.producer.heartbeats import Reports, heartbeat_of
from approvaltrail.producer.journal import Journal
from approvaltrail.producer.lock import JournalLock
from approvaltrail.producer.machine import machine_identity
from approvaltrail.producer.metrics import ProducerMetrics
from approvaltrail.producer.producer import system_clock
from approvaltrail.producer.relay import Relay
from approvaltrail.producer.resume import Resumption

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from approvaltrail.producer.directory import JournalPath
    from approvaltrail.producer.settings import ProducerSettings
    from approvaltrail.schemas.messages import Heartbeat

_LOOK_SECONDS = 0.2


class Condition(StrEnum):
    """What a journal is at the moment."""

    IN_USE = "in_use"
    """A process holds it; the numbers are that process's last hint."""
    FREE = "free"
    """The next start of its service resumes it."""
    RETIRED = "retired"
    """It takes no more events; the next start sends on what it still holds."""
    DAMAGED = "damaged"
    """The next start sets it aside and sends on what is readable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalReport:
    """One journal, seen from outside."""

    file: Path
    producer_id: str
    condition: Condition
    service: str | None = None
    instance: str | None = None
    last_sequence: int = 0
    relayed_sequence: int = 0
    bytes_on_disk: int = 0

    @property
    def pending(self) -> int:
        """Events that the broker has not acknowledged."""
        return max(0, self.last_sequence - self.relayed_sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainReport:
    """What came of draining a directory."""

    journals: int
    """Free journals that had something to send."""
    sent: int
    pending: int
    in_use: int
    """Journals that running processes hold: they send their own."""
    problem: str | None = None
    """Why events are still pending, where the relay knows."""


def list_journals(directory: Path) -> list[JournalReport]:
    """Look at every journal in a directory; changes nothing.

    Raises:
        JournalDirectoryError: there is no such directory.
    """
    return [_report(path) for path in _existing(directory).every_journal()]


def drain_journals(
    directory: Path,
    settings: ProducerSettings,
    *,
    timeout_seconds: float,
    on_progress: Callable[[int, int], None] = lambda _sent, _total: None,
) -> DrainReport:
    """Send on what free journals of all services hold, and say that they are closed.

    Args:
        directory: where the journals are; no process may need them meanwhile.
        settings: where Kafka is, and every bound; its service and directory are not used.
        timeout_seconds: give up after so long; what is pending stays on disk.
        on_progress: is told (events sent, events there were) now and then.

    Raises:
        JournalDirectoryError: there is no such directory.
    """
    found = _existing(directory)
    in_use = sum(report.condition is Condition.IN_USE for report in list_journals(directory))
    opened = Resumption(found, settings, machine=machine_identity(), clock=system_clock).adopt_all()
    metrics, reports = ProducerMetrics(), Reports()
    journals = [
        Journal(one, settings, clock=system_clock, metrics=metrics.journal, takes_events=False)
        for one in opened
    ]
    total = sum(journal.pending for journal in journals)

    def heartbeat(journal: Journal, closed: bool) -> Heartbeat:  # noqa: FBT001
        limit = settings.journal_limit_bytes
        return heartbeat_of(journal, reports, now=system_clock(), limit_bytes=limit, closed=closed)

    relay = Relay(settings, journals, metrics=metrics.relay, heartbeat=heartbeat, on_tend=_nothing)
    problem = _drained(journals, relay, timeout_seconds, total, on_progress)
    pending = sum(journal.pending for journal in journals)
    return DrainReport(
        journals=len(journals),
        sent=total - pending,
        pending=pending,
        in_use=in_use,
        problem=problem if pending else None,
    )


def _drained(
    journals: list[Journal],
    relay: Relay,
    timeout_seconds: float,
    total: int,
    on_progress: Callable[[int, int], None],
) -> str | None:
    if not journals:
        return None
    deadline = time.monotonic() + timeout_seconds
    for journal in journals:
        journal.start()
    relay.start()
    try:
        while time.monotonic() < deadline and not all(map(_complete, journals)):
            on_progress(total - sum(journal.pending for journal in journals), total)
            time.sleep(_LOOK_SECONDS)
        for journal in journals:
            journal.finish(1.0)
        problem = relay.last_error
        relay.stop(max(2.0, deadline - time.monotonic()))
        on_progress(total - sum(journal.pending for journal in journals), total)
    finally:
        for journal in journals:
            journal.close()
    return problem


def _complete(journal: Journal) -> bool:
    return journal.delivered and journal.sealed.sequence >= journal.last_sequence


def _existing(directory: Path) -> JournalDirectory:
    if not directory.is_dir():
        raise JournalDirectoryError(f"there is no directory {directory}: check the path")
    return JournalDirectory(directory)


def _report(path: JournalPath) -> JournalReport:
    size = sum(file.stat().st_size for file in (path.file, path.wal) if file.exists())
    try:
        lock = JournalLock.acquire(path.lock)
    except JournalInUseError:
        hint = JournalLock.hint_of(path.lock)
        return JournalReport(
            file=path.file,
            producer_id=path.producer_id,
            condition=Condition.IN_USE,
            last_sequence=hint.last_sequence,
            relayed_sequence=hint.relayed_sequence,
            bytes_on_disk=size,
        )
    try:
        return _free_report(path, lock, size)
    finally:
        lock.release()


def _free_report(path: JournalPath, lock: JournalLock, size: int) -> JournalReport:
    hint = lock.hint()
    try:
        database = JournalDatabase.open_to_read(path)
        try:
            state = database.state()
        finally:
            database.close()
    except (sqlite3.Error, TypeError):
        return JournalReport(
            file=path.file,
            producer_id=path.producer_id,
            condition=Condition.DAMAGED,
            last_sequence=hint.last_sequence,
            relayed_sequence=hint.relayed_sequence,
            bytes_on_disk=size,
        )
    return JournalReport(
        file=path.file,
        producer_id=state.producer_id,
        condition=Condition.RETIRED if state.retired else Condition.FREE,
        service=state.service,
        instance=state.instance,
        last_sequence=state.last_sequence,
        relayed_sequence=state.relayed_sequence,
        bytes_on_disk=size,
    )


def _nothing() -> None:
    """Nothing else is to be looked after."""
