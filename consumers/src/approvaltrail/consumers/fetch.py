"""Read the topics and hand each message to its topic's lane, never more than the lanes can hold."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from approvaltrail.consumers.backoff import Backoff
from approvaltrail.consumers.continuity import Verdict
from approvaltrail.consumers.errors import KafkaUnavailableError
from approvaltrail.consumers.lane import Lane
from approvaltrail.consumers.membership import Membership
from approvaltrail.consumers.unreadable import Unreadable

_WAIT_MS = 200
"""How long to wait for messages before looking again which partitions may be read."""
_AROUND_SECONDS = 10.0
_LOOK_AGAIN_SECONDS = 0.05
_LAG_SECONDS = 1.0
_PATIENCE_SECONDS = 60.0
_SILENCE_SECONDS = 5.0
"""A broker answers a fetch at least every quarter of a second, also with nothing."""
_log = structlog.stdlib.get_logger(__name__)


class Fetch:
    """Reads what is owned, is not waiting, and has room in its lane."""

    def __init__(self, membership: Membership, lanes: Mapping[str, Lane]) -> None:
        self._consumer = membership.consumer
        self._lanes = lanes
        self._offsets = membership.offsets
        self._stalls = membership.stalls
        self._continuity = membership.continuity
        self._instance = membership.instance
        self._metrics = membership.metrics
        self.space = asyncio.Event()
        """Set whenever a partition may have become readable."""
        self._failure: str | None = None
        self._fatal: Exception | None = None
        self._lag_at = 0.0

    @property
    def trouble(self) -> str | None:
        """What keeps messages from being read, in a sentence; None when nothing does."""
        if self._failure is not None:
            return self._failure
        answered = [
            at
            for partition in self._readable()
            if partition in self._consumer.assignment()
            and (at := self._consumer.last_poll_timestamp(partition)) is not None
        ]
        silence = time.time() - max(answered) / 1000 if answered else 0.0
        if silence < _SILENCE_SECONDS:
            return None
        return f"Kafka has not answered for {silence:.0f} s: check that it runs and is reachable"

    def fail(self, error: Exception) -> None:
        """Let `run` end: partitions were assigned, and it is not known where to begin."""
        self._fatal = error
        self.space.set()

    async def run(self) -> None:
        """Read until cancelled.

        Raises:
            KafkaUnavailableError: reading has failed for a minute; a new start may help.
            InstanceTakenError: another process goes by this sink's name.
        """
        backoff, failing_since = Backoff(), 0.0
        while True:
            self._instance.check()
            if self._fatal is not None:
                raise KafkaUnavailableError(
                    f"the group's positions cannot be read ({type(self._fatal).__name__}): check "
                    "that this user may read the group, and start again"
                ) from self._fatal
            try:
                await self._read()
            except KafkaError as error:
                self._instance.failed(error)
                failing_since = failing_since or time.monotonic()
                self._failure = f"Kafka cannot be read ({type(error).__name__})"
                _log.warning("fetch_failed", error=type(error).__name__)
                if time.monotonic() - failing_since > _PATIENCE_SECONDS:
                    raise KafkaUnavailableError(
                        f"{self._failure}: check that it runs and that this user may read the "
                        "topics and commit in the group"
                    ) from error
                await asyncio.sleep(backoff.next_seconds())
            else:
                failing_since, self._failure = 0.0, None
                backoff.reset()

    async def _read(self) -> None:
        readable = self._readable()
        if not readable:
            self.space.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_MS / 1000):
                    await self.space.wait()
            # Errors of the group (no access, say) show only when asked for messages. What is being
            # assigned is not asked for: nobody would take what came.
            if not self._consumer.assignment():
                await self._consumer.getmany(timeout_ms=0, max_records=1)
            return
        epoch = self._offsets.epoch
        room = min(self._lanes[partition.topic].room for partition in readable)
        try:
            found = await self._consumer.getmany(*readable, timeout_ms=_WAIT_MS, max_records=room)
        except UnicodeDecodeError:
            await self._read_around(epoch)
            return
        for partition, messages in found.items():
            self._take(partition, messages, epoch)
        self._report_lag()

    async def _read_around(self, epoch: int) -> None:
        """Read each partition by itself until one is at a message that cannot be read: get over it.

        None is sought again meanwhile: what is on its way for it would be dropped each time.
        """
        for partition in self._readable():
            await self._read_anew(partition)
        deadline = time.monotonic() + _AROUND_SECONDS
        while time.monotonic() < deadline:
            for partition in self._readable():
                room = self._lanes[partition.topic].room
                try:
                    found = await self._consumer.getmany(partition, timeout_ms=0, max_records=room)
                except UnicodeDecodeError:
                    self._take(partition, await self._up_to_unreadable(partition, room), epoch)
                    return
                if messages := found.get(partition):
                    self._take(partition, messages, epoch)
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def _up_to_unreadable(self, partition: TopicPartition, room: int) -> list[Any]:
        messages: list[Any] = []
        await self._read_anew(partition)
        while len(messages) < room:
            try:
                found = await self._consumer.getmany(partition, timeout_ms=_WAIT_MS, max_records=1)
            except UnicodeDecodeError:
                offset = await self._consumer.position(partition)
                self._consumer.seek(partition, offset + 1)
                _log.error("message_unreadable", offset=offset, **_where(partition))
                unreadable = Unreadable(
                    topic=partition.topic, partition=partition.partition, offset=offset
                )
                return [*messages, unreadable]
            messages += found.get(partition, [])
        return messages

    async def _read_anew(self, partition: TopicPartition) -> None:
        """Go back to what was taken last.

        A fetch that breaks off at one partition has dropped what it had drained of others, behind
        which their positions stand already.
        """
        expected = self._continuity.next_of(partition)
        if expected is None:  # nothing was ever taken of it: the group begins at its beginning
            expected = (await self._consumer.beginning_offsets([partition]))[partition]
        self._consumer.seek(partition, expected)

    def _readable(self) -> list[TopicPartition]:
        waiting = self._stalls.waiting()
        return [
            partition
            for partition in self._offsets.owned
            if partition not in waiting and not self._lanes[partition.topic].full
        ]

    def _take(self, partition: TopicPartition, messages: Sequence[Any], epoch: int) -> None:
        if not self._offsets.owns([partition], epoch):
            # Partitions changed hands while we waited: whoever owns this one now starts here.
            self._seek(partition, messages[0].offset)
            return
        if self._stalls.is_waiting(partition):
            self._seek(partition, self._stalls.offset_of(partition))
            return
        reading = self._continuity.read(partition, messages)
        match reading.verdict:
            case Verdict.READ_AGAIN:
                _log.warning("offsets_passed_over", **_where(partition), **_gap(reading))
                self._seek(partition, reading.expected)
                return
            case Verdict.TAKE_WITH_GAP:
                self._metrics.skipped_offsets.labels(partition.topic).inc(reading.skipped)
                _log.error("offsets_missing", **_where(partition), **_gap(reading))
            case Verdict.TAKE:
                pass
        if reading.repeated:
            self._metrics.repeated.labels(partition.topic).inc(reading.repeated)
        self._lanes[partition.topic].add(partition, messages)

    def _seek(self, partition: TopicPartition, offset: int) -> None:
        if partition in self._consumer.assignment():
            self._consumer.seek(partition, offset)

    def _report_lag(self) -> None:
        now = time.monotonic()
        if now - self._lag_at < _LAG_SECONDS:
            return
        self._lag_at = now
        for partition in self._offsets.owned & self._consumer.assignment():
            end = self._consumer.highwater(partition)
            at = self._continuity.next_of(partition)
            if end is not None and at is not None:
                lag = self._metrics.lag.labels(partition.topic, str(partition.partition))
                lag.set(max(0, end - at))


def _where(partition: TopicPartition) -> dict[str, object]:
    return {"topic": partition.topic, "partition": partition.partition}


def _gap(reading: Any) -> dict[str, object]:
    return {"expected_offset": reading.expected, "skipped": reading.skipped}
