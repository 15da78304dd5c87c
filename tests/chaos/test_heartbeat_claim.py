"""A heartbeat says how far a journal came at an instant: nothing recorded before it is left out."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.chaos.oracle import completeness
from tests.chaos.recorder import new_event
from tests.consumers.parts import stored_ids, until

from approvaltrail.producer import Producer

if TYPE_CHECKING:
    from tests.chaos.world import World

_LAST_HEARTBEAT = "SELECT max(stored_at) FROM heartbeats"


@pytest.mark.timeout(90)
async def test_completeness_does_not_reach_beyond_an_event_whose_commit_is_under_way(
    world: World,
) -> None:
    """The disk is slow: an event has its time and is not committed while heartbeats go out."""
    world.start_sink("one")
    async with Producer(world.producer_settings()) as producer:
        await producer.record(new_event())
        (file,) = world.journals.glob("*.journal")
        with world.store() as store, contextlib.closing(sqlite3.connect(file)) as other:
            await until(lambda: stored_ids(store), "the first event is stored")
            other.execute("BEGIN IMMEDIATE")  # the writer's commit has to wait for this one
            late = asyncio.create_task(producer.record(new_event()))
            await asyncio.sleep(0)
            since = datetime.now(UTC) + timedelta(seconds=1)
            await until(lambda: store.query(_LAST_HEARTBEAT).scalar() > since, "a heartbeat")
            claimed = completeness(store).complete_until
            other.rollback()
            recorded = await late
    assert claimed is not None
    assert claimed <= recorded.recorded_at, (
        f"complete until {claimed}, and an event recorded at {recorded.recorded_at} came later"
    )
