"""Several sinks in one group: rebalances, and a member that wakes up too late."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from tests.consumers.parts import (
    Journal,
    Topic,
    assert_counted_once,
    metric,
    running,
    stored_ids,
    until,
)
from tests.consumers.process import SinkProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from approvaltrail.consumers.settings import SinkSettings
    from approvaltrail.store.connection import Store

EVENTS = 3_000


async def test_sinks_that_come_and_go_under_load_store_each_event_once(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """A second member joins, the first leaves, while events arrive: exact."""
    journal, chosen = Journal(), settings(flush_events=200, flush_interval_ms=20)

    async def load() -> None:
        for _ in range(EVENTS // 100):
            await topic.send(journal, journal.records(100))
            await asyncio.sleep(0.01)

    sending = asyncio.create_task(load())
    async with running(chosen) as first:
        await until(lambda: len(stored_ids(store)) > 300, "the first stores")
        async with running(chosen) as second:
            await until(lambda: metric(second, "stored_total", topic=topic.events), "it stores too")
            assert len({first.condition().details["partitions"], 9}) == 2
            await sending
            await until(lambda: len(stored_ids(store)) == EVENTS, "all stored")
        assert metric(first, "rebalances_total") >= 2
    committed = await topic.committed(chosen.sink_group_id)
    assert sum(offset or 0 for offset in committed.values()) == EVENTS
    assert_counted_once(store, journal)


async def test_p11_a_stalled_sink_that_wakes_up_changes_nothing(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings], tmp_path: Path
) -> None:
    """P-11: while it held offsets another took over; its late insert and commit do no harm."""
    journal, chosen = Journal(), settings()
    stalled = SinkProcess(chosen, tmp_path / "stalled.log", flush_interval_ms="1500")
    try:
        await until(lambda: stalled.ready, "the first sink is ready")
        await topic.send(journal, journal.records(100))
        await until(
            lambda: stalled.metric("buffered_messages", topic.events) == 100, "it holds all"
        )
        os.kill(stalled.pid, signal.SIGSTOP)
        async with running(chosen) as other:
            await until(lambda: len(stored_ids(store)) == 100, "the other stored them")
            await topic.send(journal, journal.records(300))
            await until(lambda: len(stored_ids(store)) == 400, "and went on")
            await until(
                lambda: metric(other, "stored_total", topic=topic.events) == 400, "committed"
            )
            before = await topic.committed(chosen.sink_group_id)
            os.kill(stalled.pid, signal.SIGCONT)
            await until(lambda: other.condition().details["partitions"] != 9, "it is back")
            await topic.send(journal, journal.records(50))
            await until(lambda: len(stored_ids(store)) == 450, "all stored")
            after = await topic.committed(chosen.sink_group_id)
            assert all((after[number] or 0) >= (before[number] or 0) for number in before)
    finally:
        stalled.stop()
    assert_counted_once(store, journal)
