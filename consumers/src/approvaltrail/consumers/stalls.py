"""Partitions that wait because a dead letter of theirs has nowhere to go."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aiokafka.structs import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Where a partition stands, why, and when it tries again."""

    offset: int
    """The message that could be neither stored nor set aside."""
    why: str
    again_at: float


class Stalls:
    """The waiting partitions; each tries again after a while, from the message it stands at."""

    def __init__(self, again_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._again_seconds = again_seconds
        self._clock = clock
        self._stalls: dict[TopicPartition, Stall] = {}

    def add(self, partition: TopicPartition, offset: int, why: str) -> None:
        """Let a partition stand at this offset."""
        again_at = self._clock() + self._again_seconds
        self._stalls[partition] = Stall(offset=offset, why=why, again_at=again_at)

    def waiting(self) -> set[TopicPartition]:
        """Return the partitions that are not to be read now."""
        now = self._clock()
        return {partition for partition, stall in self._stalls.items() if stall.again_at > now}

    def is_waiting(self, partition: TopicPartition) -> bool:
        """Say whether this partition is not to be read now."""
        stall = self._stalls.get(partition)
        return stall is not None and stall.again_at > self._clock()

    def offset_of(self, partition: TopicPartition) -> int:
        """Return where a waiting partition stands."""
        return self._stalls[partition].offset

    def passed(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the partitions that got over it."""
        for partition in partitions:
            self._stalls.pop(partition, None)

    def clear(self) -> None:
        """Forget all: somebody else may own them now."""
        self._stalls.clear()

    def __len__(self) -> int:
        """Return how many partitions have not got over it yet."""
        return len(self._stalls)

    def reasons(self) -> list[str]:
        """Return a sentence for each."""
        return [
            f"{partition.topic}-{partition.partition} stands at offset {stall.offset}: {stall.why}"
            for partition, stall in sorted(self._stalls.items())
        ]
