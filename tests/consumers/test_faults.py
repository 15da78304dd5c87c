"""The store fails in every way it can: nothing is lost, nothing counts twice, health says so."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.consumers.parts import (
    Journal,
    Topic,
    assert_counted_once,
    metric,
    running,
    stored_ids,
    until,
)
from tests.support.engine_faults import (
    Answer,
    Close,
    Delay,
    ErrorCode,
    FaultProxy,
    RunThenClose,
    Status,
)

from approvaltrail.schemas.messages import DeadLetterCause

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.engine_faults import Fault

    from approvaltrail.consumers.settings import SinkSettings
    from approvaltrail.store.connection import Store

INSERT = "INSERT INTO events"
LATE = Answer(b"Code: 241. DB::Exception: (total) memory limit exceeded. (MEMORY_LIMIT_EXCEEDED)\n")
"""The status was sent before the exception came."""
PAGE = Answer(b"<html><body>Please sign in</body></html>")
BLANK = Answer(b"")
"""Something in between says that all is well, and the store never heard of it."""
NOTHING = Answer(b"", cut=True)
HALF = Answer(b"half an ans", cut=True)


@pytest.mark.parametrize(
    "fault",
    [
        ErrorCode(252),
        ErrorCode(241),
        ErrorCode(60),
        Status(503),
        Close(),
        Close(reset=False),
        RunThenClose(),
        RunThenClose(reset=False),
        LATE,
        PAGE,
        BLANK,
        NOTHING,
        HALF,
    ],
    ids=repr,
)
async def test_inserts_that_fail_or_whose_outcome_is_unknown_are_repeated(
    topic: Topic,
    store: Store,
    database: str,
    settings: Callable[..., SinkSettings],
    engine_faults: FaultProxy,
    fault: Fault,
) -> None:
    """Whatever an insert meets, it is said again until it is done, and counts once."""
    journal = Journal()
    engine_faults.inject(fault, match=INSERT, times=4)
    chosen = settings(clickhouse_dsn=engine_faults.through(database), flush_events=50)
    async with running(chosen) as sink:
        await topic.send(journal, journal.records(200))
        await until(lambda: len(stored_ids(store)) == 200, "all stored")
        await until(lambda: sink.condition().ready, "well again")
        assert metric(sink, "dead_letters_total", topic=topic.events, cause="undecodable") == 0
    assert (
        sum(committed or 0 for committed in (await topic.committed(chosen.sink_group_id)).values())
        == 200
    )
    assert [seen.fault for seen in engine_faults.seen].count(fault) == 4
    assert_counted_once(store, journal)
    assert store.query("SELECT count() FROM dead_letters").scalar() == 0


async def test_while_the_store_is_away_the_position_stays_memory_is_bounded_and_health_says_so(
    topic: Topic,
    store: Store,
    database: str,
    settings: Callable[..., SinkSettings],
    engine_faults: FaultProxy,
) -> None:
    """Twice flush_events at most are held; everything is stored once the store is back."""
    journal = Journal()
    engine_faults.inject(Close(), match=INSERT, times=1_000_000)
    chosen = settings(clickhouse_dsn=engine_faults.through(database), flush_events=100)
    async with running(chosen) as sink:
        await topic.send(journal, journal.records(1_000))
        await until(
            lambda: metric(sink, "insert_retries_total", why="unknown_outcome") >= 5, "retries"
        )
        held = metric(sink, "buffered_messages", topic=topic.events)
        condition = sink.condition()
        assert held <= 100
        assert (condition.state, condition.ready) == ("degraded", False)
        assert "the store has not taken writes for" in condition.reasons[0]
        assert database.split("@", maxsplit=1)[0] not in repr(condition)
        assert set((await topic.committed(chosen.sink_group_id)).values()) == {None}
        engine_faults.clear()
        await until(lambda: len(stored_ids(store)) == 1_000, "all stored")
        await until(lambda: sink.condition().ready, "well again")
    assert_counted_once(store, journal)


async def test_a_message_that_only_the_store_refuses_is_found_by_halving(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """What decodes well and is refused alone becomes `refused_by_store`; the rest is stored."""
    journal, victim = Journal(), Journal()
    records = [*journal.records(9), victim.record(target="cursed"), *journal.records(9)]
    store.command("ALTER TABLE events ADD CONSTRAINT not_cursed CHECK target != 'cursed'")
    async with running(settings(flush_interval_ms=300)):
        await topic.send(journal, records, partition=0)
        await until(lambda: len(stored_ids(store)) == 18, "neighbours stored")
        await until(lambda: store.query("SELECT count() FROM dead_letters").scalar(), "set aside")
    rows = store.query("SELECT offset, cause, detail FROM dead_letters FINAL").rows
    assert rows == [(9, DeadLetterCause.REFUSED_BY_STORE, "the store refused it with code 469")]
    assert_counted_once(store, journal)


async def test_a_stop_while_the_store_is_away_ends_in_time_and_commits_nothing(
    topic: Topic,
    store: Store,
    database: str,
    settings: Callable[..., SinkSettings],
    engine_faults: FaultProxy,
) -> None:
    """What could not be stored before the stop is read again by the next start."""
    journal = Journal()
    engine_faults.inject(Close(), match=INSERT, times=1_000_000)
    chosen = settings(clickhouse_dsn=engine_faults.through(database), drain_timeout_seconds=0.5)
    async with running(chosen) as sink:
        await topic.send(journal, journal.records(30))
        await until(
            lambda: metric(sink, "insert_retries_total", why="unknown_outcome"), "a failure"
        )
        before = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - before < 5
    assert set((await topic.committed(chosen.sink_group_id)).values()) == {None}
    engine_faults.clear()
    async with running(chosen):
        await until(lambda: len(stored_ids(store)) == 30, "all stored")
    assert_counted_once(store, journal)


@pytest.mark.parametrize("answer", [LATE, PAGE, HALF, Answer(b"\0\x01\xff" * 5)], ids=repr)
async def test_a_question_answered_with_garbage_keeps_no_sink_from_its_work(
    topic: Topic,
    store: Store,
    database: str,
    settings: Callable[..., SinkSettings],
    engine_faults: FaultProxy,
    answer: Answer,
) -> None:
    """What the sink asks beside its inserts may be answered by anything: it goes on."""
    journal = Journal()
    engine_faults.inject(answer, match="SELECT kafka_partition", times=1_000)
    engine_faults.inject(answer, match="heartbeat_latest", times=3)
    chosen = settings(clickhouse_dsn=engine_faults.through(database), repair_interval_seconds=0.2)
    async with running(chosen) as sink:
        await topic.send(journal, journal.records(30))
        await until(lambda: len(stored_ids(store)) == 30, "all stored")
        await until(lambda: metric(sink, "completeness_asked_timestamp_seconds") > 0, "it looks")
    assert_counted_once(store, journal)


async def test_nothing_is_passed_over_while_partitions_are_being_assigned(
    topic: Topic,
    store: Store,
    database: str,
    settings: Callable[..., SinkSettings],
    engine_faults: FaultProxy,
) -> None:
    """A group that has committed nothing stores the first message of each partition too."""
    journal = Journal()
    for partition in range(3):
        await topic.send(journal, journal.records(5), partition=partition)
    engine_faults.inject(Delay(0.9), match="SELECT kafka_partition", times=1)
    async with running(settings(clickhouse_dsn=engine_faults.through(database))):
        await until(lambda: len(stored_ids(store)) == 15, "all stored")
    assert_counted_once(store, journal)


async def test_a_store_that_refuses_everything_is_said_to(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """A constraint that no row meets is the store's fault: nothing is set aside, health says so."""
    journal = Journal()
    store.command("ALTER TABLE events ADD CONSTRAINT nothing CHECK target = 'none'")
    async with running(settings(flush_interval_ms=300)) as sink:
        await topic.send(journal, journal.records(300), partition=0)
        await until(lambda: "refused" in " ".join(sink.condition().reasons), "health says so")
        assert not sink.condition().ready
        store.command("ALTER TABLE events DROP CONSTRAINT nothing")
        await until(lambda: len(stored_ids(store)) == 300, "all stored")
        await until(lambda: sink.condition().ready, "well again")
    assert_counted_once(store, journal)
    assert store.query("SELECT count() FROM dead_letters").scalar() == 0
