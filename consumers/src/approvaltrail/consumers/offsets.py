"""Which partitions are ours, since when, and how far each of them is done.

Kafka takes a commit from a member that lost its partitions and got them back meanwhile: it cannot
tell the old assignment's work from the new one's. So each assignment has a number here, an epoch,
and what was fetched in one epoch is never committed in another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError
from aiokafka.structs import TopicPartition

from approvaltrail.consumers.errors import KafkaUnavailableError
from approvaltrail.consumers.metrics import SinkMetrics

_log = structlog.stdlib.get_logger(__name__)


class Offsets:
    """Commits what is done, for partitions that are still owned since it was fetched."""

    def __init__(self, consumer: AIOKafkaConsumer, metrics: SinkMetrics) -> None:
        self._consumer = consumer
        self._metrics = metrics
        self._owned: frozenset[TopicPartition] = frozenset()
        self.epoch = 0

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """The partitions that are ours now."""
        return self._owned

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin an epoch with these partitions."""
        self.epoch += 1
        self._owned = frozenset(partitions)

    def revoke(self) -> None:
        """End the epoch: nothing fetched in it will be committed any more."""
        self.epoch += 1
        self._owned = frozenset()

    def owns(self, partitions: Iterable[TopicPartition], epoch: int) -> bool:
        """Say whether any of them is still ours since that epoch."""
        return epoch == self.epoch and not self._owned.isdisjoint(partitions)

    async def commit(self, done: Mapping[TopicPartition, int], epoch: int) -> bool:
        """Commit where each partition goes on; return False when that came too late.

        aiokafka itself repeats a commit that a broker could not take just now.

        Raises:
            KafkaUnavailableError: no commit is possible.
        """
        if epoch != self.epoch:
            return self._fenced(done, "the partitions were given away meanwhile")
        offsets = {partition: at for partition, at in done.items() if partition in self._owned}
        if not offsets:
            return True
        try:
            await self._consumer.commit(offsets)
        except (CommitFailedError, IllegalStateError) as error:
            if epoch == self.epoch:
                self.revoke()
            return self._fenced(offsets, type(error).__name__)
        except KafkaError as error:
            raise KafkaUnavailableError(
                f"positions cannot be committed ({type(error).__name__}): check that this user may "
                "read in the group; what was stored is read again, and counts once"
            ) from error
        return True

    def _fenced(self, done: Mapping[TopicPartition, int], why: str) -> bool:
        self._metrics.fenced.inc()
        _log.warning("commit_fenced", partitions=len(done), why=why)
        return False
