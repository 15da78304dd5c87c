"""What a started producer consists of: its journals, their writers, and the relay."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from approvaltrail.producer.directory import JournalDirectory
from approvaltrail.producer.errors import JournalDirectoryError
from approvaltrail.producer.health import ProducerHealth, health_of
from approvaltrail.producer.heartbeats import Reports, heartbeat_of
from approvaltrail.producer.journal import Journal
from approvaltrail.producer.machine import machine_identity
from approvaltrail.producer.relay import Relay
from approvaltrail.producer.resume import Resumption
from approvaltrail.producer.unrecorded import Unrecorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from approvaltrail.producer.metrics import ProducerMetrics
    from approvaltrail.producer.relay import Connect
    from approvaltrail.producer.resume import Chosen
    from approvaltrail.producer.settings import ProducerSettings
    from approvaltrail.schemas.messages import Heartbeat


_FAILED_START_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseReport:
    """How a producer ended."""

    pending: int
    """Events on disk that the broker has not acknowledged; the next start sends them."""
    in_time: bool
    """Whether every thread ended within the time that was given."""


class Session:
    """One started producer, until it is closed or its process forks."""

    def __init__(
        self,
        settings: ProducerSettings,
        metrics: ProducerMetrics,
        reports: Reports,
        clock: Callable[[], int],
        connect: Connect,
    ) -> None:
        """Choose and open the journals.

        Raises:
            JournalDirectoryError: the directory cannot be used, or no journal be made in it.
            JournalVersionError: a newer version wrote a journal of this service.
        """
        self._settings = settings
        self._metrics = metrics
        self._reports = reports
        self._clock = clock
        directory = JournalDirectory(settings.journal_dir)
        directory.prepare(settings.allowed_file_systems)
        with _no_trace_of_failure(directory):
            chosen = Resumption(
                directory, settings, machine=machine_identity(), clock=clock
            ).choose()
            try:
                self._build(chosen, connect)
            except BaseException:
                chosen.give_back()
                raise

    def _build(self, chosen: Chosen, connect: Connect) -> None:
        settings, metrics, clock = self._settings, self._metrics, self._clock
        self.journal = Journal(
            chosen.active, settings, clock=clock, metrics=metrics.journal, unrecorded=Unrecorded()
        )
        self.adopted = [
            Journal(opened, settings, clock=clock, metrics=metrics.journal, takes_events=False)
            for opened in chosen.adopted
        ]
        self._relay = Relay(
            settings,
            self._journals,
            metrics=metrics.relay,
            heartbeat=self._heartbeat,
            on_tend=self._measure,
            connect=connect,
        )

    def start(self) -> None:
        """Start every thread."""
        try:
            for journal in self._journals:
                journal.start()
            self._relay.start()
        except BaseException:  # no thread can be had: let others have the journals
            self.close(_FAILED_START_SECONDS)
            raise

    def close(self, timeout_seconds: float) -> CloseReport:
        """Take no more events, deliver, say so, and close every file, within the time."""
        deadline = time.monotonic() + timeout_seconds
        for journal in self._journals:
            journal.stop_taking()
        ended = [journal.finish(_left(deadline)) for journal in self._journals]
        ended.append(self._relay.stop(_left(deadline)))
        pending = sum(journal.pending for journal in self._journals)
        for journal in self._journals:
            journal.close()
        return CloseReport(pending=pending, in_time=all(ended))

    def health(self) -> ProducerHealth:
        """Look at everything."""
        return health_of(self.journal, self.adopted, self._relay, self._reports, self._clock())

    def let_go_in_child(self) -> None:
        """Close the lock descriptors that a forked child has inherited, and nothing else."""
        for journal in self._journals:
            journal.let_go_in_child()

    @property
    def _journals(self) -> list[Journal]:
        return [self.journal, *self.adopted]

    def _heartbeat(self, journal: Journal, closed: bool) -> Heartbeat:  # noqa: FBT001
        return heartbeat_of(
            journal,
            self._reports,
            now=self._clock(),
            limit_bytes=self._settings.journal_limit_bytes,
            closed=closed,
        )

    def _measure(self) -> None:
        metrics, journal = self._metrics, self.journal
        metrics.pending.set(sum(one.pending for one in self._journals))
        metrics.fill.set(journal.space.fill)
        metrics.unrecorded.set(journal.unrecorded.total)
        metrics.scrubbed.set(self._reports.scrubbed_values)


@contextlib.contextmanager
def _no_trace_of_failure(directory: JournalDirectory) -> Iterator[None]:
    """Remove what was made for a start that fails, and say what is in its way."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        directory.unmake()
        raise JournalDirectoryError(
            f"no journal can be opened in {directory.path} ({_reason(error)}): free space there "
            "and mend its permissions, or set APPROVALTRAIL_JOURNAL_DIR; then start again"
        ) from error
    except BaseException:
        directory.unmake()
        raise


def _reason(error: OSError | sqlite3.Error) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return getattr(error, "sqlite_errorname", "") or type(error).__name__


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())
