"""The sink is killed at any moment: what was committed is stored, and nothing counts twice."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest
from tests.consumers.parts import Journal, Topic, assert_counted_once, running, stored_ids, until
from tests.consumers.process import SinkProcess
from tests.support.engine_faults import Delay, FaultProxy, RunThenClose

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from approvaltrail.consumers.settings import SinkSettings
    from approvaltrail.store.connection import Store

SEED = 11
KILLS = 3


async def test_p12_s15_kill_under_load_loses_nothing_and_counts_each_once(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings], tmp_path: Path
) -> None:
    """P-12, S-15: SIGKILL at random moments while events arrive, some of them twice: exact."""
    chance, journal = random.Random(SEED), Journal()
    chosen = settings(sink_instance="the-only-one")
    stopped = asyncio.Event()

    async def load() -> None:
        while not stopped.is_set():
            records = journal.records(40)
            await topic.send(journal, [*records, *records[:5]])
            await asyncio.sleep(0.02)

    sending = asyncio.create_task(load())
    for kill in range(KILLS):
        sink = SinkProcess(chosen, tmp_path / f"{kill}.log", flush_events="300")
        stored = len(stored_ids(store))
        await until(lambda stored=stored: len(stored_ids(store)) > stored, f"run {kill} stores")
        await asyncio.sleep(chance.uniform(0, 0.4))
        sink.kill()
    stopped.set()
    await sending
    last = SinkProcess(chosen, tmp_path / "last.log")
    try:
        await until(lambda: len(stored_ids(store)) == len(journal.event_ids), "all stored")
    finally:
        assert last.stop() == 0
    assert_counted_once(store, journal)


@pytest.mark.parametrize("fault", [Delay(3.0), RunThenClose()], ids=repr)
async def test_p12_a_kill_between_insert_and_commit_repeats_the_insert_and_counts_it_once(
    topic: Topic,
    store: Store,
    database: str,
    settings: Callable[..., SinkSettings],
    engine_faults: FaultProxy,
    tmp_path: Path,
    fault: Delay | RunThenClose,
) -> None:
    """P-12, P-16: rows are in, the position is not: the next start inserts them again, once."""
    journal, chosen = Journal(), settings(sink_instance="the-only-one")
    engine_faults.inject(fault, match="INSERT INTO events", times=1_000)
    through = engine_faults.through(database)
    sink = SinkProcess(chosen, tmp_path / "killed.log", clickhouse_dsn=through)
    try:
        await until(lambda: sink.ready, "ready")
        await topic.send(journal, journal.records(60))
        await until(lambda: len(stored_ids(store)) > 0, "rows are in")
    finally:
        sink.kill()
    assert set((await topic.committed(chosen.sink_group_id)).values()) == {None}
    async with running(chosen) as again:
        await until(lambda: len(stored_ids(store)) == 60, "all stored")
        await until(
            lambda: again.metrics.registry.get_sample_value(
                "approvaltrail_sink_repeated_total", {"topic": topic.events}
            ),
            "what was met again is counted",
        )
    assert_counted_once(store, journal)
