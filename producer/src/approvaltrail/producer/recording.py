"""One journal's transactions: stamp, insert, seal, keep house. For the writer's thread alone."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from typing import TYPE_CHECKING, Final

from approvaltrail.producer.errors import Cause, JournalUnavailableError
from approvaltrail.producer.retention import deletion
from approvaltrail.producer.space import row_bytes
from approvaltrail.producer.unrecorded import event_of
from approvaltrail.schemas.encoding import encode_event

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from approvaltrail.producer.database import JournalDatabase, Statement
    from approvaltrail.producer.directory import JournalPath
    from approvaltrail.producer.guard import FileGuard
    from approvaltrail.producer.progress import Progress, Step
    from approvaltrail.producer.retention import Retention
    from approvaltrail.producer.seals import ReadySeal, Sealer
    from approvaltrail.producer.space import Space
    from approvaltrail.producer.stamping import Row, Stamped, Stamper
    from approvaltrail.producer.unrecorded import Unrecorded

_MEASURE_BYTES: Final = 256 * 1024
_PROGRESS_SECONDS: Final = 0.25
_RETENTION_SECONDS: Final = 10.0
_DELETION_SHARE: Final = 0.2
"""Of the writer's time, while there is more to delete: the rest is for those who record."""
_CAUSES: Final = (
    ("SQLITE_FULL", Cause.DISK_FULL),
    ("SQLITE_READONLY", Cause.READ_ONLY),
    ("SQLITE_IOERR", Cause.DISK_ERROR),
    ("SQLITE_CORRUPT", Cause.DAMAGED),
    ("SQLITE_NOTADB", Cause.DAMAGED),
    ("SQLITE_BUSY", Cause.BUSY),
    ("SQLITE_LOCKED", Cause.BUSY),
    ("SQLITE_CANTOPEN", Cause.MISSING),
)
_NEXT_STEP: Final = {
    Cause.FULL: "the relay must deliver first: see that the broker is reachable, or raise "
    "APPROVALTRAIL_JOURNAL_LIMIT_BYTES; recording resumes by itself",
    Cause.DISK_FULL: "free space on its disk: recording resumes by itself",
    Cause.READ_ONLY: "make it and its disk writable again: recording resumes by itself",
    Cause.DISK_ERROR: "free space on its disk, or replace the disk: recording resumes by itself",
    Cause.DAMAGED: "restart the process: the file is set aside and what is readable is sent",
    Cause.BUSY: "another program has it open: close that; recording resumes by itself",
    Cause.MISSING: "put it back, or restart the process to begin a new journal",
}


class Recording:
    """Everything that is written to one journal."""

    def __init__(  # noqa: PLR0913 - the parts of a journal, once, by name
        self,
        *,
        path: JournalPath,
        database: JournalDatabase,
        guard: FileGuard,
        stamper: Stamper,
        sealer: Sealer,
        progress: Progress,
        retention: Retention,
        space: Space,
        unrecorded: Unrecorded,
        clock: Callable[[], int],
    ) -> None:
        self.path = path
        self._database = database
        self._guard = guard
        self.stamper = stamper
        self.sealer = sealer
        self._progress = progress
        self.retention = retention
        self.space = space
        self.unrecorded = unrecorded
        self._clock = clock
        self._unmeasured_bytes = 0
        self._unsealed: list[bytes] = []
        self._progress_written_at = time.monotonic()
        self._delete_at = time.monotonic() + _RETENTION_SECONDS
        self._deleting = False
        self.space.used = database.used_bytes()

    def write(self, rows: Sequence[Row]) -> tuple[int, int]:
        """Write a batch and what rides along; return its first number and its time.

        Raises:
            JournalUnavailableError: nothing of the batch may be called recorded.
        """
        self.settle()
        self._guard.check()
        try:
            stamped = self.stamper.stamp(rows)
            self._commit(stamped, self._due_seal(), self._due_step())
        finally:
            self.stamper.release()
        self.retention.began(stamped.first_sequence)
        self._unsealed = stamped.bodies
        self._estimate(stamped, rows)
        return stamped.first_sequence, stamped.recorded_at

    def settle(self) -> None:
        """Do what a batch leaves to be done after its callers were answered."""
        bodies, self._unsealed = self._unsealed, []
        self.sealer.add(bodies)
        if self._unmeasured_bytes >= min(_MEASURE_BYTES, self.space.limit // 64):
            self.measure()

    def measure(self) -> None:
        """Replace the estimate of the used space by the file's own count."""
        self.space.used = self._database.used_bytes()
        self._unmeasured_bytes = 0

    def keep_house(self, *, idle: bool) -> None:
        """Write what is due without an event: a seal, the relay's position, a deletion.

        Args:
            idle: nothing was written just now, so that nobody has looked at the file either.

        Raises:
            JournalUnavailableError: the journal does not take writes.
        """
        self.settle()
        if idle:
            self._guard.check()
        seal, step = self._due_seal(), self._due_step()
        if seal or step:
            self._commit(None, seal, step)
        self._retain()

    def record_sums(self, *, closing: bool) -> int:
        """Record refusals that were only counted, if there is room; return how many they are."""
        if not self.unrecorded.total:
            return 0
        if not self.space.admits(self.space.headroom if not closing else 0, unverified=not closing):
            return 0
        taken = self.unrecorded.take()
        try:
            self.write([(None, encode_event(event_of(*item))) for item in taken.items()])
        except JournalUnavailableError:
            self.unrecorded.give_back(taken)
            raise
        return sum(counted.count for counted in taken.values())

    def probe(self) -> None:
        """Find out whether the journal takes writes again.

        Raises:
            JournalUnavailableError: it does not.
        """
        self._guard.check()
        self._retain(forced=True)
        self._run([("UPDATE state SET probes = probes + 1", ())])
        self.measure()

    def seconds_left(self) -> float:
        """Return how long the next deletion or seal may wait."""
        left = self._delete_at - time.monotonic()
        if self.sealer.unsealed_events:
            left = min(left, self.sealer.seconds_left())
        return left

    def finish(self) -> None:
        """Seal the rest and write the last position; the journal is closed after it."""
        self.settle()
        seal = self.sealer.ready() if self.sealer.unsealed_events else None
        step = self._progress.unwritten()
        if seal or step:
            self._commit(None, seal, step)

    def finish_progress(self) -> None:
        """Write the relay's last position; losing it costs duplicates, nothing else."""
        with contextlib.suppress(JournalUnavailableError):
            if step := self._progress.unwritten():
                self._commit(None, None, step)

    def close(self) -> None:
        """Move the log into the file and close it; without it the next start takes longer."""
        try:
            self._guard.check()
            self._database.checkpoint()
        except (JournalUnavailableError, sqlite3.Error):
            pass
        finally:
            self._database.close()

    def _due_seal(self) -> ReadySeal | None:
        return self.sealer.ready() if self.sealer.due() else None

    def _due_step(self) -> Step | None:
        """Return the relay's progress now and then: in every transaction it would cost latency."""
        if time.monotonic() - self._progress_written_at < _PROGRESS_SECONDS:
            return None
        return self._progress.unwritten()

    def _commit(self, stamped: Stamped | None, seal: ReadySeal | None, step: Step | None) -> None:
        extras = step.statements() if step else []
        if seal:
            extras += _seal_statements(seal)
        try:
            if stamped:
                count = len(stamped.bodies)
                self._database.append(stamped.parameters, count, extras)
            else:
                self._database.run(extras)
        except sqlite3.Error as error:
            raise self._unavailable(error) from error
        if stamped:
            self.stamper.confirm(stamped)
        if seal:
            self.sealer.confirm(seal)
        if step:
            self._progress.confirm(step)
            self._progress_written_at = time.monotonic()

    def _run(self, statements: list[Statement]) -> None:
        try:
            self._database.run(statements)
        except sqlite3.Error as error:
            raise self._unavailable(error) from error

    def _retain(self, *, forced: bool = False) -> None:
        """Delete the next events that may go, if it is time for it: a few, and then a rest."""
        pressed = self.space.used > self.space.pressure
        began = time.monotonic()
        if not forced and began < self._delete_at and not (pressed and not self._deleting):
            return
        try:
            self._deleting = self._delete_next(pressed=pressed)
        except sqlite3.Error as error:
            raise self._unavailable(error) from error
        ended = time.monotonic()
        rest = (ended - began) * (1 / _DELETION_SHARE - 1)
        self._delete_at = ended + (rest if self._deleting else _RETENTION_SECONDS)

    def _delete_next(self, *, pressed: bool) -> bool:
        """Delete the oldest events that may go; say whether there were any."""
        delivered = min(self._progress.relayed_sequence, self.sealer.sealed.sequence)
        last = self.retention.due(delivered=delivered, now=self._clock(), pressed=pressed)
        if not last:
            return False
        stamper, seal = self.stamper, self._progress.relayed_seal
        self._database.run(deletion(last, stamper.last_sequence, stamper.last_recorded_at, seal))
        self.retention.deleted()
        self.measure()
        return True

    def _estimate(self, stamped: Stamped, rows: Sequence[Row]) -> None:
        size = sum(row_bytes(body, row[0]) for body, row in zip(stamped.bodies, rows, strict=True))
        self.space.used += size
        self._unmeasured_bytes += size

    def _unavailable(self, error: sqlite3.Error) -> JournalUnavailableError:
        name = getattr(error, "sqlite_errorname", "") or ""
        cause = next((cause for prefix, cause in _CAUSES if name.startswith(prefix)), None)
        if cause is Cause.DISK_FULL and not self.space.admits(
            self.space.headroom, unverified=False
        ):
            cause = Cause.FULL
        what = cause or Cause.INTERNAL
        step = _NEXT_STEP.get(what, "restart the process and report this")
        return JournalUnavailableError(
            what,
            f"the journal {self.path.file} takes no events ({what.value}, {name or 'no code'}); "
            f"nothing was recorded. Next: {step}",
        )


def _seal_statements(seal: ReadySeal) -> list[Statement]:
    return [
        ("INSERT INTO seals VALUES (?,?,?)", (seal.number, seal.last_sequence, seal.body)),
        (
            "UPDATE state SET seal_number = ?, sealed_sequence = ?, seal_digest = ?",
            (seal.number, seal.last_sequence, seal.digest),
        ),
    ]
