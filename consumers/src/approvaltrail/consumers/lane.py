"""One topic's way into the store: gather, store, set aside what cannot be stored, commit.

While one batch is on its way, the next one gathers. There is never more than that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import structlog
from aiokafka.structs import TopicPartition

from approvaltrail.consumers.batch import Batch, Buffer
from approvaltrail.consumers.dead_letters import DeadLetters
from approvaltrail.consumers.errors import BatchAbandonedError
from approvaltrail.consumers.membership import Membership
from approvaltrail.consumers.sorting import Rejected
from approvaltrail.consumers.writer import Wanted

_log = structlog.stdlib.get_logger(__name__)


class Flush(Protocol):
    """Stores messages; what each topic's messages need differs only here."""

    async def store(self, messages: Sequence[Any], wanted: Wanted) -> list[Rejected]:
        """Store all that can be stored and return the rest with its causes."""


class Lane:
    """Moves one topic's messages; `run` it in a task, `add` to it, `drain` it at the end."""

    def __init__(
        self,
        *,
        topic: str,
        buffer: Buffer,
        flush: Flush,
        dead_letters: DeadLetters,
        membership: Membership,
    ) -> None:
        self.topic = topic
        self._buffer = buffer
        self._flush = flush
        self._dead_letters = dead_letters
        self._offsets = membership.offsets
        self._stalls = membership.stalls
        self._continuity = membership.continuity
        self._consumer = membership.consumer
        self._metrics = membership.metrics
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False

    @property
    def full(self) -> bool:
        """Whether nothing more may be added before a batch is taken."""
        return self._buffer.full

    @property
    def room(self) -> int:
        """How many more messages may be added."""
        return self._buffer.room

    def add(self, partition: TopicPartition, messages: Sequence[Any]) -> None:
        """Take messages of one partition, in order."""
        self._buffer.add(partition, messages)
        self._changed.set()
        self._report()

    def drop_buffered(self) -> None:
        """Forget what was fetched and is not on its way."""
        self._buffer.clear()
        self._report()

    async def settle(self) -> None:
        """Return when nothing is on its way."""
        await self._idle.wait()

    def drain(self) -> None:
        """Store what is here without waiting for more, and let `run` end."""
        self._draining = True
        self._changed.set()

    async def run(self, space: asyncio.Event) -> None:
        """Store batch after batch until drained; `space` is set whenever a buffer was emptied."""
        while True:
            batch = await self._next_batch()
            if batch is None:
                return
            space.set()
            self._idle.clear()
            try:
                await self._store(batch)
            finally:
                self._idle.set()

    async def _next_batch(self) -> Batch | None:
        while True:
            due_in = self._buffer.due_in()
            if due_in is not None and (self._draining or due_in <= 0):
                batch = self._buffer.take(self._offsets.epoch)
                self._report()
                return batch
            if self._draining:
                return None
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(due_in):
                    await self._changed.wait()

    async def _store(self, batch: Batch) -> None:
        def wanted() -> bool:
            return self._offsets.owns(batch.messages, batch.epoch)

        if not wanted():
            return
        try:
            rejected = await self._flush.store(list(batch), wanted)
            waiting = await self._dead_letters.deliver(rejected, wanted) if rejected else {}
        except BatchAbandonedError:
            _log.warning("batch_abandoned", topic=self.topic, events=batch.events)
            return
        done = batch.next_offsets() | {
            partition: offset for partition, (offset, _) in waiting.items()
        }
        self._metrics.stored.labels(self.topic).inc(batch.events - len(rejected))
        self._metrics.batch_events.observe(batch.events)
        if await self._offsets.commit(_moved(done, batch), batch.epoch) and wanted():
            for partition, offset in batch.next_offsets().items():
                self._continuity.stored(partition, offset)
            self._stalls.passed(partition for partition in done if partition not in waiting)
            self._stall(waiting)

    def _stall(self, waiting: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """Let partitions stand, and read them from there when they try again."""
        for partition, (offset, why) in waiting.items():
            self._stalls.add(partition, offset, why)
            self._buffer.drop(partition)
            self._consumer.seek(partition, offset)
            self._continuity.sought(partition, offset)
        self._metrics.stalled.set(len(self._stalls))
        self._report()

    def _report(self) -> None:
        self._metrics.buffered.labels(self.topic).set(self._buffer.events)


def _moved(done: Mapping[TopicPartition, int], batch: Batch) -> dict[TopicPartition, int]:
    """Leave out partitions that stand where they were: there is nothing to commit."""
    return {
        partition: offset
        for partition, offset in done.items()
        if offset > batch.messages[partition][0].offset
    }
