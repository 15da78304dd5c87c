"""A large batch goes to the store as two blocks at once, and is one batch all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.consumers.parts import Journal, Topic, assert_counted_once, running, stored_ids, until
from tests.support.engine_faults import Close, FaultProxy

from approvaltrail.consumers.flush import _BLOCK_EVENTS_AT_LEAST, _parts
from approvaltrail.schemas.contract import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from approvaltrail.consumers.settings import SinkSettings
    from approvaltrail.store.connection import Store

EVENTS = 2 * _BLOCK_EVENTS_AT_LEAST
INSERT = "INSERT INTO events"


@pytest.mark.parametrize(
    ("messages", "blocks"),
    [(1, 1), (EVENTS - 1, 1), (EVENTS, 2), (EVENTS + 1, 2), (10 * EVENTS, 2)],
)
def test_a_batch_is_divided_in_order_when_it_is_worth_it(messages: int, blocks: int) -> None:
    """Two blocks at most, none smaller than what an insert's own cost is worth."""
    parts = _parts(range(messages))
    assert len(parts) == blocks
    assert [number for part in parts for number in part] == list(range(messages))


@pytest.mark.timeout(180)
async def test_a_poisoned_and_interrupted_half_neither_loses_nor_holds_up_the_other(
    topic: Topic,
    store: Store,
    database: str,
    settings: Callable[..., SinkSettings],
    engine_faults: FaultProxy,
) -> None:
    """Each half is stored, set aside and tried again by itself; they are committed together."""
    journal = Journal()
    records = journal.records(EVENTS)
    poison = records[0][1][:HEADER_BYTES] + b"\0no event"
    for partition in (
        0,
        2,
    ):  # the first half begins with one partition, the second ends with another
        await topic.send_raw(poison, partition=partition)
    for first in range(0, EVENTS, 2_000):
        await topic.send(journal, records[first : first + 2_000])
    engine_faults.inject(Close(), match=INSERT, skip=1)
    chosen = settings(
        clickhouse_dsn=engine_faults.through(database),
        flush_events=EVENTS + 2,
        flush_interval_ms=60_000,
    )
    async with running(chosen):
        await until(lambda: len(stored_ids(store)) == EVENTS, "both halves are stored")
    committed = await topic.committed(chosen.sink_group_id)
    assert sum(offset or 0 for offset in committed.values()) == EVENTS + 2
    faults = [seen.fault for seen in engine_faults.seen if INSERT in seen.sql]
    assert len([fault for fault in faults if fault]) == 1
    assert len(faults) == 2 * 2 + 1, "each half is refused once, and one of them is cut off"
    assert_counted_once(store, journal)
    assert store.query("SELECT count() FROM dead_letters FINAL").scalar() == 2
