"""Each event once: whatever is sent twice, read twice or inserted twice."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.consumers.parts import (
    Journal,
    Message,
    Topic,
    assert_counted_once,
    metric,
    running,
    stored_ids,
    until,
)

from approvaltrail.consumers.block import BlockBuilder
from approvaltrail.consumers.window import time_window
from approvaltrail.schemas.contract import event_contract
from approvaltrail.schemas.messages import Heartbeat, ProducerState, Seal
from approvaltrail.schemas.topics import HEARTBEATS, SEALS
from approvaltrail.store.writing import insert_events

if TYPE_CHECKING:
    from collections.abc import Callable

    from approvaltrail.consumers.settings import SinkSettings
    from approvaltrail.store.connection import Store

SEED = 7


async def test_duplicates_in_the_topic_are_counted_once(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """Events sent once, twice or three times, out of order, are each stored and counted once."""
    chance, journal = random.Random(SEED), Journal()
    sent = [record for record in journal.records(1_500) for _ in range(chance.choice((1, 1, 2, 3)))]
    chance.shuffle(sent)
    async with running(settings(flush_events=400)):
        await topic.send(journal, sent)
        await until(lambda: len(stored_ids(store)) == 1_500, "all stored")
        await until(lambda: store_rows(store, "count()") > 0, "rows")
    assert_counted_once(store, journal)


def store_rows(store: Store, what: str) -> int:
    """Ask one number of the table of events."""
    return int(store.query(f"SELECT {what} FROM events").scalar())


@pytest.mark.parametrize("count", [1, 2, 10, 11])
async def test_s12_a_batch_of_any_size_is_stored_in_time(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings], count: int
) -> None:
    """S-12: one event, two, the limit and one more are stored without any later event."""
    journal = Journal()
    async with running(settings(flush_events=10)) as sink:
        assert metric(sink, "stored_total", topic=topic.events) == 0
        await topic.send(journal, journal.records(count), partition=0)
        await until(lambda: len(stored_ids(store)) == count, f"{count} stored")
    assert_counted_once(store, journal)


def test_p13_p14_a_batch_inserted_again_after_many_others_is_counted_once(store: Store) -> None:
    """P-13, P-14: however late a batch is inserted again, it changes nothing."""
    journal, builder = Journal(), BlockBuilder(event_contract())
    times = time_window(retention_days=30, future_tolerance_seconds=60)

    def block_of(count: int) -> tuple[bytes, int]:
        block = builder.build(
            [Message(value, sequence) for sequence, value in journal.records(count)]
        )
        return block.data, block.fence

    blocks = [block_of(5) for _ in range(30)]
    for data, fence in [*blocks, blocks[0], blocks[0], blocks[7]]:
        insert_events(store, data, fence, event_contract().fingerprint, times)
    assert_counted_once(store, journal)


async def test_events_of_many_months_are_stored_together(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """A backlog that spans two years of months is no reason for dead letters."""
    journal, now = Journal(), datetime.now(UTC)
    records = [journal.record(occurred_at=now - timedelta(days=30 * month)) for month in range(24)]
    async with running(settings()):
        await topic.send(journal, records)
        await until(lambda: len(stored_ids(store)) == 24, "all months stored")
    assert_counted_once(store, journal)


async def test_heartbeats_and_seals_are_stored_once_and_bad_ones_set_aside(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """The producers' own messages take the same way as events."""
    now, producer_id = datetime.now(UTC), Journal().producer_id
    heartbeat = Heartbeat(
        producer_id=producer_id,
        service="tidb-mcp",
        instance="pod-1",
        sent_at=now,
        started_at=now,
        state=ProducerState.CLOSED,
        last_sequence=12,
    )
    seal = Seal(
        producer_id=producer_id,
        seal_number=1,
        first_sequence=1,
        last_sequence=12,
        merkle_root="a" * 64,
        previous_seal_digest="0" * 64,
        sealed_at=now,
    )
    async with running(settings()):
        for _ in range(3):
            await topic.send_raw(heartbeat.encode(), topic=HEARTBEATS)
            await topic.send_raw(seal.encode(), topic=SEALS)
        await topic.send_raw(heartbeat.encode()[:-2], topic=HEARTBEATS)
        await topic.send_raw(b"", topic=SEALS)
        await until(lambda: store.query("SELECT count() FROM dead_letters").scalar() == 2, "aside")
        await until(lambda: store.query("SELECT count() FROM seals FINAL").scalar() == 1, "seal")
    rows = store.query("SELECT producer_id, last_sequence, state FROM heartbeats FINAL").rows
    assert [(str(one), number, state) for one, number, state in rows] == [
        (producer_id, 12, "closed")
    ]
    causes = store.query("SELECT topic, cause FROM dead_letters FINAL ORDER BY topic").rows
    assert causes == [
        (topic.prefix + HEARTBEATS, "undecodable"),
        (topic.prefix + SEALS, "empty"),
    ]
