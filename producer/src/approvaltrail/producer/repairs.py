"""Requests to send a range again: read without a group, merged, and served from the journal.

Every producer reads all requests and keeps its own. A request counts as served by its time, which
is kept in the journal, so that a restart does not serve it again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from approvaltrail.producer.backoff import Backoff
from approvaltrail.producer.kafka_options import connection_options
from approvaltrail.producer.log_events import Log
from approvaltrail.schemas import topics
from approvaltrail.schemas.encoding import microseconds
from approvaltrail.schemas.errors import UndecodableError
from approvaltrail.schemas.messages import RepairRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from approvaltrail.producer.journal import Journal
    from approvaltrail.producer.settings import ProducerSettings

_MOST_RANGES: Final = 1_000
"""More ranges for one journal are merged into one: sending too much again does no harm."""
_LONGEST_WAIT_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 0.5

log = structlog.get_logger("approvaltrail.producer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A range to be sent again, and the time (µs) of the last request in it."""

    first_sequence: int
    last_sequence: int
    requested_at: int


class RepairQueue:
    """What is to be sent again, overlapping ranges merged; used in the relay's loop alone."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Repair]] = {}

    def add(self, producer_id: str, repair: Repair) -> None:
        """Take a request in."""
        first, last, at = repair.first_sequence, repair.last_sequence, repair.requested_at
        apart: list[Repair] = []
        known = self._waiting.get(producer_id, [])
        crowded = len(known) >= _MOST_RANGES
        for other in known:
            if crowded or (other.first_sequence <= last + 1 and first <= other.last_sequence + 1):
                first = min(first, other.first_sequence)
                last = max(last, other.last_sequence)
                at = max(at, other.requested_at)
            else:
                apart.append(other)
        merged = Repair(first_sequence=first, last_sequence=last, requested_at=at)
        self._waiting[producer_id] = [*apart, merged]

    def take(self, producer_id: str) -> list[Repair]:
        """Take out what waits for one journal, the oldest request first."""
        waiting = self._waiting.pop(producer_id, [])
        return sorted(waiting, key=lambda repair: repair.requested_at)

    def __bool__(self) -> bool:
        return bool(self._waiting)


class RepairReader:
    """Fills the queue from Kafka as long as its task runs. A failure here stops nothing else."""

    def __init__(
        self,
        settings: ProducerSettings,
        journals: Mapping[str, Journal],
        queue: RepairQueue,
        on_request: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._journals = journals
        self._queue = queue
        self._on_request = on_request

    async def run(self) -> None:
        """Read requests until cancelled."""
        backoff = Backoff(_LONGEST_WAIT_SECONDS)
        while True:
            try:
                await self._read(backoff)
            except (KafkaError, OSError, TimeoutError) as error:
                wait = backoff.seconds()
                log.warning(
                    Log.REPAIRS_UNREADABLE, error=type(error).__name__, wait_seconds=round(wait, 1)
                )
                await asyncio.sleep(wait)

    async def _read(self, backoff: Backoff) -> None:
        consumer = AIOKafkaConsumer(
            topics.prefixed(topics.REPAIRS, self._settings.topic_prefix),
            group_id=None,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **connection_options(self._settings),
        )
        try:
            async with asyncio.timeout(self._settings.relay_connect_seconds):
                await consumer.start()
            backoff.reset()
            while True:
                batch = await consumer.getmany(timeout_ms=1_000, max_records=500)
                for messages in batch.values():
                    for message in messages:
                        self._take(message)
        finally:
            await _stopped(consumer)

    def _take(self, message: Any) -> None:
        try:
            request = RepairRequest.decode(message.value or b"")
        except UndecodableError:
            return  # not for us to judge: whoever wrote it will ask again
        journal = self._journals.get(request.producer_id)
        requested_at = microseconds(request.requested_at)
        if journal is None or requested_at <= journal.progress.repaired_at:
            return
        self._queue.add(
            request.producer_id,
            Repair(
                first_sequence=request.first_sequence,
                last_sequence=max(request.first_sequence, request.last_sequence),
                requested_at=requested_at,
            ),
        )
        self._on_request()


async def _stopped(consumer: AIOKafkaConsumer) -> None:
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await consumer.stop()
    except (KafkaError, OSError, TimeoutError):
        return
