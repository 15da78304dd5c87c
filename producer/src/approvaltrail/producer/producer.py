"""The producer that a server embeds: events in, durable at once, and on their way to Kafka."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, Self

import structlog

from approvaltrail.producer.errors import NotStartedError
from approvaltrail.producer.fork import WATCH
from approvaltrail.producer.health import NOT_STARTED, ProducerHealth
from approvaltrail.producer.heartbeats import Reports
from approvaltrail.producer.link import Link
from approvaltrail.producer.log_events import Log
from approvaltrail.producer.metrics import ProducerMetrics
from approvaltrail.producer.session import CloseReport, Session
from approvaltrail.producer.settings import ProducerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from types import TracebackType

    from prometheus_client import CollectorRegistry

    from approvaltrail.producer.journal import Journal
    from approvaltrail.producer.relay import Connect
    from approvaltrail.schemas.events import ApprovalEvent
    from approvaltrail.schemas.messages import Probe
    from approvaltrail.schemas.recorder import Recorded

log = structlog.get_logger("approvaltrail.producer")


def system_clock() -> int:
    """Return the system's time in µs since the epoch."""
    return time.time_ns() // 1_000


class Producer:
    """Records approval events durably and relays them to Kafka.

    Use it as an asynchronous context manager, through `lifespan`, or with `start` and `close`.
    Recording needs no broker. A forked child gets a journal of its own with its first event.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        *,
        registry: CollectorRegistry | None = None,
        clock: Callable[[], int] = system_clock,
        connect: Connect = Link.open,
    ) -> None:
        """Take settings, a Prometheus registry (default: one of its own), a clock in µs, Kafka."""
        self._connect = connect
        self.settings = settings
        self.metrics = ProducerMetrics(registry)
        self._clock = clock
        self._reports = Reports()
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._journal: Journal | None = None
        self._forked = False
        self._closed = CloseReport(pending=0, in_time=True)

    @classmethod
    def from_environment(cls, **overrides: Any) -> Self:
        """Build from the environment; overrides such as `service` win.

        Raises:
            SettingsError: names each setting that has no usable value.
        """
        return cls(ProducerSettings.from_environment(**overrides))

    # --- life

    def start(self) -> None:
        """Open or resume a journal and start the threads. Reads the disk, never the network.

        Raises:
            JournalDirectoryError: the journals' directory is unusable or not durable.
            JournalVersionError: a newer version wrote a journal of this service.
        """
        with self._lock:
            if self._session is not None:
                return
            session = Session(
                self.settings, self.metrics, self._reports, self._clock, self._connect
            )
            session.start()
            WATCH.watch(self)
            self._session, self._journal, self._forked = session, session.journal, False
        log.info(
            Log.PRODUCER_STARTED,
            producer_id=session.journal.producer_id,
            service=self.settings.service,
            instance=self.settings.instance,
        )

    def close_sync(self, timeout_seconds: float | None = None) -> CloseReport:
        """Deliver what is pending, say that this journal is closed, and stop, within the time.

        Args:
            timeout_seconds: the time; without it, the settings' `close_seconds`.
        """
        with self._lock:  # a second caller waits for the first, and hears the same
            session, self._session, self._journal = self._session, None, None
            self._forked = False
            if session is not None:
                self._closed = session.close(timeout_seconds or self.settings.close_seconds)
                log.info(
                    Log.PRODUCER_CLOSED,
                    pending=self._closed.pending,
                    in_time=self._closed.in_time,
                )
            return self._closed

    async def close(self, timeout_seconds: float | None = None) -> CloseReport:
        """Close without blocking the event loop; see `close_sync`."""
        return await asyncio.to_thread(self.close_sync, timeout_seconds)

    async def __aenter__(self) -> Self:
        starting = asyncio.create_task(asyncio.to_thread(self.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # a thread cannot be cancelled: what it opens would be nobody's, and stay locked
            await asyncio.wait({starting})
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:  # noqa: ARG002 - the protocol's
        """Start with an ASGI application or MCP server, and drain and close with it."""
        async with self:
            yield

    # --- recording: what an EventRecorder promises

    async def record(self, event: ApprovalEvent) -> Recorded:
        """Record one event: when this returns, it is on disk.

        Raises:
            JournalUnavailableError: nothing was recorded; do not act on the event.
            EventTooLargeError: nothing was recorded.
            NotStartedError: `start` was not called, or `close` was.
        """
        return await (self._journal or self._ready()).record(event)

    def record_sync(self, event: ApprovalEvent) -> Recorded:
        """Record one event from a thread without an event loop; errors as `record`."""
        return (self._journal or self._ready()).record_sync(event)

    async def record_many(self, events: Sequence[ApprovalEvent]) -> tuple[Recorded, ...]:
        """Record events together, all or none, with consecutive numbers; errors as `record`."""
        return await (self._journal or self._ready()).record_many(events)

    def check(self) -> None:
        """Return if an event could be recorded now; never waits for disk or network.

        Raises:
            RecorderUnavailableError: the journal is full, damaged, gone or closed.
        """
        (self._journal or self._ready()).check()

    def count_unrecorded(self, event: ApprovalEvent) -> None:
        """Count a refusal that could not be recorded; it is recorded in sum on recovery."""
        (self._journal or self._ready()).count_unrecorded(event)

    # --- reports

    def health(self) -> ProducerHealth:
        """Say how the producer is; cheap."""
        session = self._session
        return NOT_STARTED if session is None else session.health()

    def report_ledger(self, probe: Probe) -> None:
        """Say what the last look at the ledger found; heartbeats and health carry it."""
        self._reports.ledger(probe)

    def report_scrubbed(self, values: int) -> None:
        """Say that a token was removed from so many values before recording."""
        self._reports.scrubbed(values)

    # --- inside

    def _ready(self) -> Journal:
        """Return the journal; in a forked child, open one first."""
        if self._forked:
            self.start()
            log.info(Log.PRODUCER_FORKED)
        journal = self._journal
        if journal is None:
            raise NotStartedError(
                "the producer is not started, or is closed; nothing was recorded. Call start(), "
                "enter it with `async with`, or hand its lifespan to the server"
            )
        return journal

    def after_fork_in_child(self) -> None:
        """Let go of the parent's journal; the first event opens one for this process."""
        session, self._session, self._journal = self._session, None, None
        self._lock = threading.Lock()
        if session is None:
            return
        WATCH.keep(session)
        session.let_go_in_child()
        self.metrics = ProducerMetrics()
        self._reports = Reports()
        self._forked = True
