"""The relay: from the journals to Kafka, in a thread and an event loop of its own.

Recording never waits for it. It reads in order, sends, and moves a journal's position only over
contiguous acknowledgements; after any failure it begins again at that position with a new client.
So events may be sent twice and are never skipped: the sink recognises them by identity.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import structlog

from approvaltrail.producer.backoff import Backoff
from approvaltrail.producer.delivery import Delivery
from approvaltrail.producer.errors import RelayError
from approvaltrail.producer.framing import Framing
from approvaltrail.producer.link import Link
from approvaltrail.producer.log_events import Log
from approvaltrail.producer.pacing import Pacing, give_way
from approvaltrail.producer.repairs import RepairQueue, RepairReader
from approvaltrail.producer.settings import ProducerSettings
from approvaltrail.schemas import topics
from approvaltrail.schemas.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from approvaltrail.producer.journal import Journal
    from approvaltrail.producer.metrics import RelayMetrics
    from approvaltrail.schemas.messages import Heartbeat

_TEND_SECONDS: Final = 0.5
_CANCELLATIONS: Final = 10
_CANCEL_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.1
_CLOSING_RETRY_SECONDS: Final = 0.3
_JOIN_SECONDS: Final = 3.0
_CUT_OFF_SECONDS: Final = 1.0
"""Before the end of the time to close: whatever hangs is cut off then, which takes a moment."""
_LAST_WORDS_SECONDS: Final = 2.0
"""Before that end: what is undelivered then stays on disk, and the last words are said."""

log = structlog.get_logger("approvaltrail.producer")


Connect = Callable[[ProducerSettings], Awaitable[Link]]
"""Makes a link to Kafka; tests hand in one that fails."""


class RelayState(StrEnum):
    """What the relay is doing."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    RETRYING = "retrying"
    STOPPED = "stopped"


class Relay:
    """Delivers the journals of one producer until it is stopped."""

    def __init__(
        self,
        settings: ProducerSettings,
        journals: Sequence[Journal],
        *,
        metrics: RelayMetrics,
        heartbeat: Callable[[Journal, bool], Heartbeat],
        on_tend: Callable[[], None],
        connect: Connect = Link.open,
    ) -> None:
        """Take the journals, what builds a heartbeat, what is called twice a second, and Kafka."""
        self._connect = connect
        self._settings = settings
        self._framing = Framing(settings)
        self._metrics = metrics
        self._heartbeat = heartbeat
        self._on_tend = on_tend
        self._deliveries = [
            Delivery(journal, metrics, settings.relay_chunk_events) for journal in journals
        ]
        self._repairs = RepairQueue()
        self._pacing = Pacing(settings.relay_pace_events_per_second)
        self._beat_at = 0.0
        self._loop = asyncio.new_event_loop()
        self._awake = asyncio.Event()
        self._idle = False
        self._stop_at: float | None = None
        self._deadline: float | None = None
        self._thread = threading.Thread(target=self._run, name="approvaltrail-relay", daemon=True)
        self.state = RelayState.CONNECTING
        self.last_error: str | None = None
        self.failing_since: float | None = None
        """Monotonic seconds since when every attempt has failed."""
        self.oldest_pending_at: int | None = None
        """Time (µs) of the oldest undelivered event, as last looked."""

    # --- other threads' side

    def start(self) -> None:
        """Start the thread."""
        for delivery in self._deliveries:
            delivery.journal.on_commit = self.wake
        self._thread.start()

    def wake(self) -> None:
        """Say that there is something to send; cheap while the relay is at work anyway."""
        if self._idle:
            self._idle = False
            self._call(self._awake.set)

    def stop(self, timeout_seconds: float) -> bool:
        """Deliver what is pending, say the last words, and end, all within the time.

        Returns:
            Whether the thread ended.
        """
        now = time.monotonic()
        self._stop_at = now + max(timeout_seconds - _LAST_WORDS_SECONDS, timeout_seconds * 0.4)
        self._deadline = now + max(timeout_seconds - _CUT_OFF_SECONDS, timeout_seconds * 0.5)
        self._idle = False
        self._call(self._awake.set)
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _call(self, callback: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: there is nobody to wake
            self._loop.call_soon_threadsafe(callback)

    # --- the thread's side

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._live())
        finally:
            self.state = RelayState.STOPPED
            for delivery in self._deliveries:
                delivery.close()
            # not asyncio.run: it would wait for a name look-up that hangs in the executor
            self._loop.close()

    async def _live(self) -> None:
        work = asyncio.create_task(self._deliver_for_ever())
        tending = asyncio.create_task(self._tend_for_ever())
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=_LOOK_SECONDS)
                if self._deadline is not None and time.monotonic() >= self._deadline:
                    break
        finally:
            tending.cancel()
            work.cancel()
            await asyncio.wait({work, tending}, timeout=_JOIN_SECONDS)
            await _cancel_others()
        log.info(Log.RELAY_STOPPED, pending=sum(self._pending()))

    async def _deliver_for_ever(self) -> None:
        backoff = Backoff(self._settings.relay_retry_longest_seconds)
        while True:
            try:
                await self._deliver(backoff)
            except Exception as error:  # noqa: BLE001 - whatever a client does, another may work
                await self._failed(error, backoff)
            else:
                return

    async def _deliver(self, backoff: Backoff) -> None:
        """Work with one client until everything is said, or it fails."""
        await self._framing.learn()
        link = await self._connect(self._settings)
        link.give_way, link.framed = self._give_way, self._framing.framed
        repairs = asyncio.create_task(self._repair_reader().run())
        try:
            self.state, self.failing_since, self.last_error = RelayState.CONNECTED, None, None
            log.info(Log.RELAY_CONNECTED)
            self._beat_at = 0.0
            while not await self._turn(link):
                backoff.reset()
        finally:
            await asyncio.gather(ended(repairs), link.discard(), return_exceptions=True)

    async def _turn(self, link: Link) -> bool:
        """Send what is due; return whether the relay is to end now."""
        sent, repairing = 0, False
        for delivery in self._deliveries:
            sent += await delivery.step(link)
            delivery.repairs += self._repairs.take(delivery.journal.producer_id)
            repairing |= await delivery.repair_step(link)
        await self._beat(link)
        stopping = self._stop_at
        if stopping is not None and (not self._busy() or time.monotonic() >= stopping):
            await self._say_last_words(link)
            return True
        if sent or repairing or self._busy():
            recorded = sum(delivery.journal.last_sequence for delivery in self._deliveries)
            if stopping is None:
                await asyncio.sleep(self._pacing.rest(sent, recorded, backlog=sum(self._pending())))
        else:
            await self._rest()
        return False

    async def _beat(self, link: Link) -> None:
        now = time.monotonic()
        due = now - self._beat_at >= self._settings.heartbeat_seconds
        if due:
            self._beat_at = now
        for delivery in self._deliveries:
            if delivery.closing_sent or not (due or delivery.over):
                continue
            # a journal that was only sent on is at its end: nobody will write to it here
            await self._send_heartbeat(link, delivery, closed=delivery.over)

    async def _say_last_words(self, link: Link) -> None:
        for delivery in self._deliveries:
            if not delivery.closing_sent:
                await self._send_heartbeat(link, delivery, closed=True)

    async def _send_heartbeat(self, link: Link, delivery: Delivery, *, closed: bool) -> None:
        journal = delivery.journal
        heartbeat = self._heartbeat(journal, closed)
        await link.send_messages(topics.HEARTBEATS, journal.producer_id, [heartbeat.encode()])
        delivery.closing_sent = closed

    async def _rest(self) -> None:
        """Wait until something is recorded or a heartbeat is due; then let events gather."""
        self._awake.clear()
        self._idle = True
        if self._busy() or self._repairs or self._stop_at is not None:
            self._idle = False
            return
        wait = self._beat_at + self._settings.heartbeat_seconds - time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.01, wait)):
                await self._awake.wait()
            if self._stop_at is None:
                await asyncio.sleep(self._settings.relay_linger_ms / 1_000)
        self._idle = False

    async def _failed(self, error: Exception, backoff: Backoff) -> None:
        self.state = RelayState.RETRYING
        self.failing_since = self.failing_since or time.monotonic()
        kind = type(error.__cause__ or error).__name__
        self.last_error = str(error) if isinstance(error, RelayError | SettingsError) else kind
        self._metrics.client_changes.labels(kind).inc()
        wait = backoff.seconds()
        if self._stop_at is not None:
            wait = min(wait, _CLOSING_RETRY_SECONDS)
        log.warning(
            Log.RELAY_RETRYING,
            error=self.last_error,
            wait_seconds=round(wait, 2),
            pending=sum(self._pending()),
        )
        with contextlib.suppress(TimeoutError):
            self._awake.clear()
            if self._stop_at is None:
                async with asyncio.timeout(wait):
                    await self._woken_to_stop()
            else:
                await asyncio.sleep(wait)

    async def _woken_to_stop(self) -> None:
        while self._stop_at is None:
            await self._awake.wait()
            self._awake.clear()

    async def _tend_for_ever(self) -> None:
        while True:
            for delivery in self._deliveries:
                delivery.journal.watch()
                delivery.journal.write_hint()
            with contextlib.suppress(sqlite3.Error):
                times = [delivery.oldest_pending_at() for delivery in self._deliveries]
                self.oldest_pending_at = min((at for at in times if at is not None), default=None)
            self._on_tend()
            await asyncio.sleep(_TEND_SECONDS)

    def _repair_reader(self) -> RepairReader:
        journals = {delivery.journal.producer_id: delivery.journal for delivery in self._deliveries}
        return RepairReader(self._settings, journals, self._repairs, self.wake)

    def _give_way(self) -> None:
        give_way(lambda: any(delivery.journal.writing for delivery in self._deliveries))

    def _busy(self) -> bool:
        return any(delivery.has_work for delivery in self._deliveries)

    def _pending(self) -> list[int]:
        return [delivery.journal.pending for delivery in self._deliveries]


async def _cancel_others() -> None:
    """End what a discarded client left behind in this loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_LOOK_SECONDS)


async def ended(task: asyncio.Task[None]) -> None:
    """End a task whose client may take a cancellation for its own and go on: ask again."""
    for _ in range(_CANCELLATIONS):
        task.cancel()
        await asyncio.wait({task}, timeout=_CANCEL_SECONDS)
        if task.done():
            return
