"""Look for gaps that stay, and ask whoever holds the journal to send those numbers again.

What is found on the way is what the metrics of completeness show.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from approvaltrail.consumers import completeness_gauges
from approvaltrail.consumers.kafka_options import producer_options
from approvaltrail.consumers.metrics import SinkMetrics
from approvaltrail.consumers.offsets import Offsets
from approvaltrail.consumers.settings import SinkSettings
from approvaltrail.schemas.messages import RepairRequest
from approvaltrail.schemas.topics import EVENTS, REPAIRS, prefixed
from approvaltrail.store.answers import ProducerCondition, ProducerStatus, TenantScope
from approvaltrail.store.connection import Store
from approvaltrail.store.errors import StoreError
from approvaltrail.store.queries import Bounds, Queries

_AT_ONCE = 100
"""Requests in one round; the rest is asked for in the next."""
_log = structlog.stdlib.get_logger(__name__)


class RepairPlan:
    """Which gaps to ask for now: none sooner again than `again_seconds`, and few at once."""

    def __init__(self, again_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._again_seconds = again_seconds
        self._clock = clock
        self._asked: dict[tuple[str, int, int], float] = {}

    def due(self, producers: Iterable[ProducerStatus]) -> list[RepairRequest]:
        """Return the requests to send now, and remember them."""
        now = self._clock()
        self._asked = {gap: at for gap, at in self._asked.items() if now - at < self._again_seconds}
        requests: list[RepairRequest] = []
        for producer in producers:
            if producer.condition is ProducerCondition.RETIRED:
                continue
            for gap in producer.gaps:
                key = (producer.producer_id, gap.first, gap.last)
                if key not in self._asked and len(requests) < _AT_ONCE:
                    self._asked[key] = now
                    requests.append(_request(*key))
        return requests


class RepairWatch:
    """Asks on behalf of its group: only the sink that owns the first partition of events does."""

    def __init__(
        self, store: Store, settings: SinkSettings, metrics: SinkMetrics, offsets: Offsets
    ) -> None:
        in_flight = timedelta(seconds=settings.in_flight_seconds)
        silent_after = timedelta(seconds=settings.silent_after_seconds)
        bounds = Bounds(in_flight=in_flight, silent_after=silent_after)
        self._queries = Queries(store, bounds=bounds)
        self._settings = settings
        self._metrics = metrics
        self._offsets = offsets
        self._plan = RepairPlan(settings.repair_again_seconds)
        self._first = TopicPartition(prefixed(EVENTS, settings.topic_prefix), 0)
        completeness_gauges.forget(metrics)

    async def run(self) -> None:
        """Look and ask until cancelled; a failed round is tried again in the next."""
        interval = self._settings.repair_interval_seconds
        if not interval:
            await asyncio.Event().wait()
        while True:
            await asyncio.sleep(interval)
            if self._first in self._offsets.owned:
                await self._round()
            else:
                completeness_gauges.forget(self._metrics)

    async def _round(self) -> None:
        try:
            found = await asyncio.to_thread(
                self._queries.completeness, TenantScope.everything(), datetime.now(UTC)
            )
            completeness_gauges.show(self._metrics, found)
            requests = self._plan.due(found.producers)
            if requests:
                await self._ask(requests)
        except (StoreError, KafkaError, OSError) as error:
            _log.warning("repair_round_failed", error=type(error).__name__)

    async def _ask(self, requests: list[RepairRequest]) -> None:
        topic = prefixed(REPAIRS, self._settings.topic_prefix)
        producer = AIOKafkaProducer(**producer_options(self._settings))
        await producer.start()
        try:
            for request in requests:
                key = request.producer_id.encode()
                await producer.send_and_wait(topic, request.encode(), key=key)
        finally:
            await producer.stop()
        self._metrics.repairs.inc(len(requests))
        _log.warning("repairs_requested", gaps=len(requests))


def _request(producer_id: str, first: int, last: int) -> RepairRequest:
    return RepairRequest(
        producer_id=producer_id,
        first_sequence=first,
        last_sequence=last,
        requested_at=datetime.now(UTC),
    )
