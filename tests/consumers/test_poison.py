"""What cannot be stored is set aside with its cause and keeps nothing else back."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from tests.consumers.parts import (
    Journal,
    Topic,
    assert_counted_once,
    metric,
    running,
    stored_ids,
    until,
)

from approvaltrail.consumers.errors import TopicsError
from approvaltrail.consumers.redrive import RedriveFilter, RedriveReport, redrive
from approvaltrail.consumers.sink import Sink
from approvaltrail.schemas import messages as names
from approvaltrail.schemas.messages import DeadLetterCause, event_headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from approvaltrail.consumers.settings import SinkSettings
    from approvaltrail.store.connection import Store

LONG_AGO = timedelta(days=400)


def poison(kind: str, value: bytes) -> bytes | None:
    """Turn a good event into a bad message."""
    return {
        "truncated": value[:-4],
        "trailing": value + b"\x00",
        "empty": b"",
        "null": None,
        "wrong framing": b"\x00" + value[1:],
        "unknown schema": value[:2] + b"\x01" * 8 + value[10:],
        "bad text": value.replace(b"prod-7", b"prod-\xff"),
        "time out of range": value,
    }[kind]


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("truncated", DeadLetterCause.UNDECODABLE),
        ("trailing", DeadLetterCause.UNDECODABLE),
        ("empty", DeadLetterCause.EMPTY),
        ("null", DeadLetterCause.EMPTY),
        ("wrong framing", DeadLetterCause.BAD_FRAMING),
        ("unknown schema", DeadLetterCause.UNKNOWN_SCHEMA),
        ("bad text", DeadLetterCause.UNDECODABLE),
        ("time out of range", DeadLetterCause.TIME_OUT_OF_RANGE),
    ],
)
async def test_p17_a_bad_message_between_good_ones_becomes_one_dead_letter(
    topic: Topic,
    store: Store,
    settings: Callable[..., SinkSettings],
    kind: str,
    cause: DeadLetterCause,
) -> None:
    """P-17: one dead letter with position, cause, owner and original bytes; the rest is stored."""
    journal, other = Journal(), Journal()
    occurred_at = datetime.now(UTC) - (LONG_AGO if kind == "time out of range" else timedelta())
    value = poison(kind, other.record(occurred_at=occurred_at)[1])
    headers = [*event_headers(other.producer_id, 1), ("traceparent", b"00-ab")]
    async with running(settings(retention_days=365)) as sink:
        await topic.send(journal, journal.records(3), partition=1)
        offset = await topic.send_raw(value, partition=1, headers=headers, key=b"k")
        await topic.send(journal, journal.records(3), partition=1)
        await until(lambda: len(stored_ids(store)) == 6, "the good ones stored")
        await until(
            lambda: metric(sink, "dead_letters_total", topic=topic.events, cause=cause), "set aside"
        )
        assert sink.condition().ready
    assert_counted_once(store, journal)
    [row] = store.query(
        "SELECT topic, partition, offset, cause, producer_id, sequence FROM dead_letters FINAL"
    ).rows
    assert row == (topic.events, 1, offset, cause, other.producer_id, 1)
    [letter] = await topic.read_all(topic.dead)
    found = dict(letter.headers)
    assert (letter.value, letter.key) == (value, b"k")
    assert found["traceparent"] == b"00-ab"
    assert found[names.HEADER_CAUSE].decode() == cause
    assert found[names.HEADER_TOPIC].decode() == topic.events
    assert (found[names.HEADER_PARTITION], int(found[names.HEADER_OFFSET])) == (b"1", offset)


async def test_p17_a_redrive_after_the_fix_stores_the_event_once(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """P-17: after the cause is mended, a redrive stores each once, and a second one sends none."""
    journal, old = Journal(), datetime.now(UTC) - LONG_AGO
    async with running(settings(retention_days=365)):
        await topic.send(journal, [journal.record(occurred_at=old) for _ in range(5)], partition=2)
        await topic.send_raw(b"junk", partition=2, headers=event_headers(journal.producer_id, 9))
        await until(lambda: store.query("SELECT count() FROM dead_letters").scalar() == 6, "aside")
    chosen = RedriveFilter(cause=DeadLetterCause.TIME_OUT_OF_RANGE)
    told: list[RedriveReport] = []
    async with running(settings(retention_days=1_000)):
        looked = await redrive(settings(), store, chosen, dry_run=True)
        assert (looked.read, looked.matched, looked.sent) == (6, 5, 0)
        first = await redrive(
            settings(), store, RedriveFilter(cause=chosen.cause, limit=2), on_progress=told.append
        )
        assert (first.matched, first.sent, told[-1].sent) == (2, 2, 2)
        rest = await redrive(settings(), store, chosen)
        assert (rest.sent, rest.redriven_before) == (3, 2)
        assert (await redrive(settings(), store, chosen)).sent == 0
        await until(lambda: len(stored_ids(store)) == 5, "re-driven events stored")
    assert_counted_once(store, journal)
    marked = store.query("SELECT count() FROM dead_letters FINAL WHERE isNotNull(redriven_at)")
    assert marked.scalar() == 5
    resent = [one for one in await topic.read_all(topic.events) if one.partition == 2][6:]
    assert {name for one in resent for name, _ in one.headers} == {"producer_id", "sequence"}


async def test_p18_a_missing_dead_letter_topic_is_reported_at_start(
    topic: Topic, settings: Callable[..., SinkSettings]
) -> None:
    """P-18: the sink does not start without a place for dead letters, and says how to mend it."""
    await with_admin(topic, lambda admin: admin.delete_topics([topic.dead]))
    with pytest.raises(TopicsError, match=f"{topic.dead} is missing: run `approvaltrail migrate`"):
        await asyncio.wait_for(Sink(settings()).run(asyncio.Event()), 20)


async def with_admin(topic: Topic, act: Callable[[AIOKafkaAdminClient], object]) -> None:
    """Do something as the cluster's operator."""
    admin = AIOKafkaAdminClient(bootstrap_servers=topic.bootstrap_servers)
    await admin.start()
    try:
        await act(admin)
    finally:
        await admin.close()


async def set_limit(topic: Topic, size: int) -> None:
    """Let the dead-letter topic take messages up to this size."""
    change = {"max.message.bytes": str(size), "retention.ms": "-1"}
    resource = ConfigResource(ConfigResourceType.TOPIC, topic.dead, change)
    await with_admin(topic, lambda admin: admin.alter_configs([resource]))


async def test_p18_a_partition_whose_dead_letter_fits_nowhere_stands_and_goes_on_once_it_fits(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """P-18: its offset does not move, the others go on, and nothing is lost when it is mended."""
    chosen = settings(stalled_retry_seconds=0.5, dead_letter_timeout_seconds=3)
    journal = Journal()
    async with running(chosen) as sink:
        await set_limit(topic, 2_000)
        await topic.send(journal, journal.records(4), partition=0)
        too_large = await topic.send_raw(random.Random(7).randbytes(5_000), partition=0)
        await topic.send(journal, journal.records(4), partition=0)
        await until(lambda: not sink.condition().ready, "the partition stands")
        await topic.send(journal, journal.records(6), partition=1)
        await until(lambda: len(stored_ids(store)) == 14, "all good ones stored")
        committed = await topic.committed(chosen.sink_group_id)
        assert committed[0] == too_large
        [reason] = sink.condition().reasons
        assert f"{topic.events}-0 stands at offset {too_large}" in reason
        assert "larger than" in reason
        assert store.query("SELECT count() FROM dead_letters").scalar() == 0
        await set_limit(topic, 1_179_648)
        await until(lambda: sink.condition().ready, "the partition goes on")
        # P-14: what was read again meanwhile was stored already, and is counted as such
        assert metric(sink, "repeated_total", topic=topic.events) >= 5
    assert (await topic.committed(chosen.sink_group_id))[0] == too_large + 5
    assert store.query("SELECT offset FROM dead_letters FINAL").rows == [(too_large,)]
    assert_counted_once(store, journal)


async def test_p15_the_offset_waits_for_a_failed_message_although_later_ones_are_stored(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """P-15, P-16: with 2 in the way, 3 and 4 do not move the offset past it; a restart reads 2."""
    chosen = settings(stalled_retry_seconds=3_600, dead_letter_timeout_seconds=2)
    journal = Journal()
    async with running(chosen) as sink:
        await with_admin(topic, lambda admin: admin.delete_topics([topic.dead]))
        await topic.send(journal, journal.records(2), partition=0)
        bad = await topic.send_raw(b"bad", partition=0)
        await topic.send(journal, journal.records(2), partition=0)
        await until(lambda: sink.condition().state == "degraded", "the partition stands")
    assert bad == 2
    assert (await topic.committed(chosen.sink_group_id))[0] == bad
    from approvaltrail.consumers.topics_admin import ensure_topics

    await ensure_topics(topic.bootstrap_servers, topic.prefix, single_machine=True)
    async with running(chosen):
        await until(lambda: store.query("SELECT count() FROM dead_letters").scalar(), "set aside")
        await until(lambda: len(stored_ids(store)) == 4, "all stored")
    assert (await topic.committed(chosen.sink_group_id))[0] == 5
    assert_counted_once(store, journal)
