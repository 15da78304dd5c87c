"""Commits: only what is done, only of partitions still owned, never across assignments."""

from __future__ import annotations

from typing import Any

from aiokafka.errors import CommitFailedError
from aiokafka.structs import TopicPartition

from approvaltrail.consumers.metrics import SinkMetrics
from approvaltrail.consumers.offsets import Offsets
from approvaltrail.consumers.stalls import Stalls

FIRST, SECOND = TopicPartition("events", 0), TopicPartition("events", 1)


class Broker:
    """Takes commits, also those of a member that lost its partitions and got them back."""

    def __init__(self) -> None:
        self.committed: list[dict[TopicPartition, int]] = []
        self.rebalanced = False

    async def commit(self, offsets: dict[TopicPartition, int]) -> None:
        """Remember a commit, or refuse it after a rebalance."""
        if self.rebalanced:
            raise CommitFailedError
        self.committed.append(offsets)


def offsets_at(broker: Any) -> Offsets:
    """Return offsets in the first epoch, with both partitions."""
    offsets = Offsets(broker, SinkMetrics())
    offsets.assign([FIRST, SECOND])
    return offsets


async def test_work_of_an_earlier_assignment_is_never_committed() -> None:
    """P-11: the same partition, lost and given back, does not take the old batch's offset."""
    broker = Broker()
    offsets = offsets_at(broker)
    before = offsets.epoch
    offsets.revoke()
    offsets.assign([FIRST])
    assert not await offsets.commit({FIRST: 200}, before)
    assert not offsets.owns([FIRST], before)
    assert await offsets.commit({FIRST: 100}, offsets.epoch)
    assert broker.committed == [{FIRST: 100}]


async def test_only_owned_partitions_are_committed() -> None:
    """An offset of a partition that is not ours is left out."""
    broker = Broker()
    offsets = offsets_at(broker)
    other = TopicPartition("events", 7)
    assert await offsets.commit({FIRST: 3, other: 9}, offsets.epoch)
    assert broker.committed == [{FIRST: 3}]


async def test_after_a_fenced_commit_nothing_is_owned() -> None:
    """A member that Kafka has shut out drops what it holds until it is given partitions again."""
    broker = Broker()
    offsets = offsets_at(broker)
    epoch, broker.rebalanced = offsets.epoch, True
    assert not await offsets.commit({FIRST: 3}, epoch)
    broker.rebalanced = False
    assert not offsets.owned
    assert not await offsets.commit({FIRST: 3}, epoch)
    assert broker.committed == []


def test_a_standing_partition_tries_again_after_a_while() -> None:
    """It waits, then it may be read; it is named until it got over the message."""
    clock = [0.0]
    stalls = Stalls(10, clock=lambda: clock[0])
    stalls.add(FIRST, 42, "nowhere to go")
    assert (stalls.waiting(), stalls.offset_of(FIRST)) == ({FIRST}, 42)
    assert stalls.reasons() == ["events-0 stands at offset 42: nowhere to go"]
    clock[0] = 11.0
    assert stalls.waiting() == set()
    assert len(stalls) == 1
    stalls.passed([FIRST])
    assert stalls.reasons() == []
