"""The sink: everything between the topics and the store, in one process.

`python -m approvaltrail.consumers.sink` runs one; any number may share a group.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from approvaltrail.consumers.backoff import Backoff, wait_unless
from approvaltrail.consumers.batch import Buffer
from approvaltrail.consumers.continuity import Continuity
from approvaltrail.consumers.dead_letters import DeadLetters
from approvaltrail.consumers.errors import ConsumerError, KafkaUnavailableError, TopicsError
from approvaltrail.consumers.exit_codes import ExitCode
from approvaltrail.consumers.fetch import Fetch
from approvaltrail.consumers.flush import EventFlush
from approvaltrail.consumers.headers import Headers
from approvaltrail.consumers.health import Condition, HealthServer, health_app
from approvaltrail.consumers.instance import InstanceWatch
from approvaltrail.consumers.lane import Flush, Lane
from approvaltrail.consumers.logs import configure_logs
from approvaltrail.consumers.membership import Membership
from approvaltrail.consumers.message_flush import heartbeat_flush, seal_flush
from approvaltrail.consumers.metrics import SinkMetrics
from approvaltrail.consumers.offsets import Offsets
from approvaltrail.consumers.rebalance import Rebalance
from approvaltrail.consumers.repair import RepairWatch
from approvaltrail.consumers.settings import SinkSettings
from approvaltrail.consumers.stalls import Stalls
from approvaltrail.consumers.stored_positions import StoredPositions
from approvaltrail.consumers.topics_admin import check_topics
from approvaltrail.consumers.writer import StoreWriter
from approvaltrail.schemas.errors import SettingsError
from approvaltrail.schemas.registry import Registry
from approvaltrail.schemas.topics import EVENTS, HEARTBEATS, SEALS, prefixed
from approvaltrail.store.columns import check_type_map
from approvaltrail.store.connection import Store, open_store
from approvaltrail.store.errors import InvalidDsnError, MigrationError, StoreError
from approvaltrail.store.migrations import check_migrated

_DAY_MS = 86_400_000
_log = structlog.stdlib.get_logger(__name__)


class Sink:
    """Reads events, heartbeats and seals, and stores each once in effect."""

    def __init__(self, settings: SinkSettings, metrics: SinkMetrics | None = None) -> None:
        self._settings = settings
        self.metrics = metrics or SinkMetrics()
        self._stalls = Stalls(settings.stalled_retry_seconds)
        registry = Registry(settings) if settings.schema_registry_url else None
        self._headers = Headers(registry, longest_wait_seconds=settings.retry_longest_seconds)
        self._writer: StoreWriter | None = None
        self._fetch: Fetch | None = None
        self._offsets: Offsets | None = None
        self._waiting_for: str | None = "it is starting"
        self._stopping = False
        self.health_port: int | None = None
        """Where health is served, once `run` has begun and if the settings ask for it."""

    def condition(self) -> Condition:
        """Say how the sink is doing."""
        reasons = [self._waiting_for] if self._waiting_for else []
        if self._writer is not None and self._writer.trouble:
            reasons.append(self._writer.trouble)
        if self._fetch is not None and self._fetch.trouble:
            reasons.append(self._fetch.trouble)
        if self._headers.trouble:
            reasons.append(self._headers.trouble)
        reasons += self._stalls.reasons()
        owned = len(self._offsets.owned) if self._offsets else 0
        state = "stopping" if self._stopping else "degraded" if reasons else "ok"
        if self._waiting_for and not self._stopping:
            state = "starting"
        return Condition(
            ready=state == "ok", state=state, reasons=tuple(reasons), details={"partitions": owned}
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then store what was fetched, commit and leave the group.

        Raises:
            TopicsError: the topics are not as described.
            MigrationError: the tables are not what this version expects.
            SettingsError, InvalidDsnError: a setting cannot be used.
            KafkaUnavailableError: reading failed for too long.
            InstanceTakenError: another process goes by this sink's name.
        """
        check_type_map()
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self._health())
            store = stack.enter_context(open_store(self._settings.dsn()))
            if not await self._prepare(store, stop):
                return
            writer = StoreWriter(
                store, self.metrics, longest_wait_seconds=self._settings.retry_longest_seconds
            )
            stack.callback(writer.close)
            self._writer = writer
            await self._work(store, writer, stop)

    @contextlib.asynccontextmanager
    async def _health(self) -> AsyncIterator[None]:
        if self._settings.health_port is None:
            yield
            return
        app = health_app(self.condition, self.metrics.registry)
        server = HealthServer(app, host=self._settings.health_host, port=self._settings.health_port)
        await server.start()
        self.health_port = server.port
        _log.info("health_served", port=server.port)
        try:
            yield
        finally:
            await server.stop()

    async def _prepare(self, store: Store, stop: asyncio.Event) -> bool:
        """Wait for the store and for Kafka; return False when told to stop meanwhile."""
        backoff = Backoff(longest_seconds=self._settings.retry_longest_seconds)
        while not stop.is_set():
            try:
                await asyncio.to_thread(check_migrated, store)
                await check_topics(
                    self._settings.kafka_bootstrap_servers,
                    self._settings.topic_prefix,
                    options=self._settings.connection_options(),
                )
            except (MigrationError, InvalidDsnError):
                raise
            except (StoreError, KafkaUnavailableError) as error:
                self._waiting_for = str(error)
                _log.warning("sink_waits", why=self._waiting_for)
                await wait_unless(stop, backoff.next_seconds())
            else:
                return True
        return False

    async def _work(self, store: Store, writer: StoreWriter, stop: asyncio.Event) -> None:
        consumer = self._consumer()
        membership = Membership(
            consumer=consumer,
            offsets=Offsets(consumer, self.metrics),
            stalls=self._stalls,
            continuity=Continuity(),
            instance=InstanceWatch(self._settings.sink_instance),
            metrics=self.metrics,
        )
        dead_letters = DeadLetters(writer, self._settings, self.metrics)
        lanes = {
            topic: Lane(
                topic=topic,
                buffer=self._buffer(),
                flush=flush,
                dead_letters=dead_letters,
                membership=membership,
            )
            for topic, flush in self._flushes(writer).items()
        }
        self._fetch = fetch = Fetch(membership, lanes)
        self._offsets = membership.offsets
        rebalance = Rebalance(
            membership,
            events=prefixed(EVENTS, self._settings.topic_prefix),
            lanes=lanes.values(),
            fetch=fetch,
            stored_positions=StoredPositions(store),
            revocation_timeout_seconds=self._settings.revocation_timeout_seconds,
        )
        consumer.subscribe(list(lanes), listener=rebalance)
        repair = RepairWatch(store, self._settings, self.metrics, membership.offsets)
        try:
            await self._started(consumer, stop)
            await self._until_stopped(fetch, lanes, repair, stop)
        finally:
            await consumer.stop()
            await dead_letters.close()

    async def _started(self, consumer: AIOKafkaConsumer, stop: asyncio.Event) -> None:
        backoff = Backoff(longest_seconds=self._settings.retry_longest_seconds)
        while not stop.is_set():
            try:
                await consumer.start()
            except KafkaError as error:
                self._waiting_for = f"Kafka cannot be reached ({type(error).__name__})"
                _log.warning("sink_waits", why=self._waiting_for)
                await wait_unless(stop, backoff.next_seconds())
            else:
                self._waiting_for = None
                _log.info("sink_started", group=self._settings.sink_group_id)
                return

    async def _until_stopped(
        self, fetch: Fetch, lanes: dict[str, Lane], repair: RepairWatch, stop: asyncio.Event
    ) -> None:
        readers = [asyncio.create_task(fetch.run()), asyncio.create_task(repair.run())]
        storing = [asyncio.create_task(lane.run(fetch.space)) for lane in lanes.values()]
        told: asyncio.Task[Any] = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([*readers, *storing, told], return_when=asyncio.FIRST_COMPLETED)
            _raise_failure([*readers, *storing])
            self._stopping = True
            await _cancel(readers)
            await self._drain(lanes, storing)
        finally:
            await _cancel([*readers, *storing, told])

    async def _drain(self, lanes: dict[str, Lane], storing: list[asyncio.Task[None]]) -> None:
        for lane in lanes.values():
            lane.drain()
        timeout = self._settings.drain_timeout_seconds
        _, late = await asyncio.wait(storing, timeout=timeout)
        if late:
            _log.warning("stopped_before_stored", waited_seconds=timeout, topics=len(late))
        _raise_failure([task for task in storing if task not in late])

    def _consumer(self) -> AIOKafkaConsumer:
        settings = self._settings
        longest = settings.revocation_timeout_seconds * 1000 + settings.session_timeout_ms
        return AIOKafkaConsumer(
            **settings.connection_options(),
            group_id=settings.sink_group_id,
            group_instance_id=settings.sink_instance,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            rebalance_timeout_ms=int(longest),
            # A store that is away for hours must not cost us the group: we know ourselves
            # whether we move, and say so in health.
            max_poll_interval_ms=_DAY_MS,
            fetch_max_wait_ms=250,
            max_partition_fetch_bytes=4 * 1024 * 1024,
        )

    def _buffer(self) -> Buffer:
        return Buffer(
            most_events=self._settings.flush_events,
            most_bytes=self._settings.flush_bytes,
            longest_seconds=self._settings.flush_interval_ms / 1000,
        )

    def _flushes(self, writer: StoreWriter) -> dict[str, Flush]:
        prefix = self._settings.topic_prefix
        return {
            prefixed(EVENTS, prefix): EventFlush(
                writer, self._headers, self._settings, self.metrics
            ),
            prefixed(HEARTBEATS, prefix): heartbeat_flush(writer),
            prefixed(SEALS, prefix): seal_flush(writer),
        }


def _raise_failure(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done() and not task.cancelled():
            task.result()


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def run_until_signal(settings: SinkSettings) -> None:
    """Run a sink until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await Sink(settings).run(stop)


def main() -> int:
    """Run a sink with settings from the environment and return an exit code."""
    try:
        settings = SinkSettings.from_environment()
        configure_logs("sink", settings.log_level)
        asyncio.run(run_until_signal(settings))
    except (SettingsError, InvalidDsnError) as error:
        sys.stderr.write(f"sink: {error}\n")
        return ExitCode.SETTINGS
    except (TopicsError, StoreError, ConsumerError, OSError) as error:
        sys.stderr.write(f"sink: {error}\n")
        return ExitCode.UNAVAILABLE
    return ExitCode.STOPPED


if __name__ == "__main__":
    sys.exit(main())
