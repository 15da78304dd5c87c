"""What happens when the group gives partitions out anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence

import structlog
from aiokafka import ConsumerRebalanceListener
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from approvaltrail.consumers.backoff import Backoff
from approvaltrail.consumers.fetch import Fetch
from approvaltrail.consumers.lane import Lane
from approvaltrail.consumers.membership import Membership
from approvaltrail.consumers.stored_positions import StoredPositions

_BEGIN_WITHIN_SECONDS = 30.0
_log = structlog.stdlib.get_logger(__name__)


class Rebalance(ConsumerRebalanceListener):  # type: ignore[misc]
    """Lets go of partitions in order: drop what waits, finish what is on its way, commit it."""

    def __init__(
        self,
        membership: Membership,
        *,
        events: str,
        lanes: Iterable[Lane],
        fetch: Fetch,
        stored_positions: StoredPositions,
        revocation_timeout_seconds: float,
    ) -> None:
        self._consumer = membership.consumer
        self._events = events
        self._lanes = tuple(lanes)
        self._fetch = fetch
        self._stored_positions = stored_positions
        self._offsets = membership.offsets
        self._stalls = membership.stalls
        self._continuity = membership.continuity
        self._instance = membership.instance
        self._metrics = membership.metrics
        self._timeout_seconds = revocation_timeout_seconds

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Finish what is on its way, within bounds; the next owner fetches everything else."""
        self._metrics.rebalances.inc()
        for lane in self._lanes:
            lane.drop_buffered()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await asyncio.gather(*(lane.settle() for lane in self._lanes))
        except TimeoutError:
            _log.warning("revoked_with_batch_on_its_way", waited_seconds=self._timeout_seconds)
        self._offsets.revoke()
        self._stalls.clear()
        self._metrics.stalled.set(0)
        _log.info("partitions_revoked", partitions=len(list(revoked)))

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Begin to read what is ours now, from where it was committed."""
        partitions, backoff = sorted(assigned), Backoff(longest_seconds=2.0)
        deadline = time.monotonic() + _BEGIN_WITHIN_SECONDS
        while True:
            try:
                await self._begin(partitions)
            except Exception as error:  # noqa: BLE001 - raised, it would be logged and nothing read
                _log.warning("positions_unknown", error=type(error).__name__)
                if not isinstance(error, KafkaError) or time.monotonic() > deadline:
                    self._fetch.fail(error)
                    return
                await asyncio.sleep(backoff.next_seconds())
            else:
                return

    async def _begin(self, partitions: Sequence[TopicPartition]) -> None:
        # aiokafka tells its member id nowhere else.
        self._instance.joined(self._consumer._coordinator.member_id)  # noqa: SLF001
        committed = [await self._consumer.committed(partition) for partition in partitions]
        for partition, offset in zip(partitions, committed, strict=True):
            self._continuity.start(partition, offset)
        await self._note_stored(partitions)
        self._offsets.assign(partitions)
        self._fetch.space.set()
        _log.info("partitions_assigned", partitions=len(partitions))

    async def _note_stored(self, partitions: Sequence[TopicPartition]) -> None:
        stored = await self._stored_positions.ask()
        for partition in partitions:
            if partition.topic == self._events and partition.partition in stored:
                self._continuity.stored(partition, stored[partition.partition])
