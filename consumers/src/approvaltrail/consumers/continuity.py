"""Whether what was read follows what was read before: no offset passed over, none read twice.

Our topics have no transactions and are never compacted, so a position that is passed over once
held a message. It is read once more; if it is passed over again, that is said and counted, and the
producers' sequences tell which events lack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from aiokafka.structs import TopicPartition


class Verdict(Enum):
    """What to do with messages that were read."""

    TAKE = auto()
    READ_AGAIN = auto()
    """Drop them, and read from the expected position once more."""
    TAKE_WITH_GAP = auto()
    """The gap stayed: take them, and say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Messages of one partition, held against what was expected."""

    verdict: Verdict
    expected: int
    skipped: int = 0
    """Positions passed over."""
    repeated: int = 0
    """Messages at positions that were stored before."""


class Continuity:
    """Follows each partition's position; positions are forgotten when partitions change hands."""

    def __init__(self) -> None:
        self._next: dict[TopicPartition, int] = {}
        self._asked_again: dict[TopicPartition, int] = {}
        self._stored_to: dict[TopicPartition, int] = {}

    def start(self, partition: TopicPartition, committed: int | None) -> None:
        """Begin to follow a partition, from its committed offset where there is one."""
        self._asked_again.pop(partition, None)
        if committed is None:
            self._next.pop(partition, None)
        else:
            self._next[partition] = committed

    def sought(self, partition: TopicPartition, offset: int) -> None:
        """Note that a partition is read from this offset again."""
        self._next[partition] = offset

    def next_of(self, partition: TopicPartition) -> int | None:
        """Return which position is read next, where that is known."""
        return self._next.get(partition)

    def stored(self, partition: TopicPartition, next_offset: int) -> None:
        """Note that everything before this offset is stored."""
        self._stored_to[partition] = max(next_offset, self._stored_to.get(partition, 0))

    def read(self, partition: TopicPartition, messages: Sequence[Any]) -> Reading:
        """Judge messages that were read, and expect what follows them unless they are dropped."""
        first, last = messages[0].offset, messages[-1].offset
        expected = self._next.get(partition, first)
        skipped = max(0, last + 1 - expected - len(messages))
        if skipped and self._asked_again.get(partition) != expected:
            self._asked_again[partition] = expected
            return Reading(verdict=Verdict.READ_AGAIN, expected=expected, skipped=skipped)
        self._next[partition] = last + 1
        repeated = self._repeated(partition, messages)
        verdict = Verdict.TAKE_WITH_GAP if skipped else Verdict.TAKE
        return Reading(verdict=verdict, expected=expected, skipped=skipped, repeated=repeated)

    def _repeated(self, partition: TopicPartition, messages: Sequence[Any]) -> int:
        stored_to = self._stored_to.get(partition, 0)
        if messages[0].offset >= stored_to:
            return 0
        return sum(message.offset < stored_to for message in messages)
