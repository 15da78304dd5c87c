"""Whoever may write to the topic writes anything: nothing is lost, and nothing stands still."""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import fastavro
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions
from aiokafka.errors import MessageSizeTooLargeError
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy
from aiokafka.structs import TopicPartition
from tests.consumers.parts import (
    Journal,
    Message,
    Topic,
    assert_counted_once,
    running,
    stored_ids,
    until,
)

from approvaltrail.consumers.block import BlockBuilder
from approvaltrail.consumers.isolation import _without_logical_types
from approvaltrail.consumers.redrive import RedriveFilter, redrive
from approvaltrail.consumers.topics_admin import ensure_topics
from approvaltrail.schemas.contract import HEADER_BYTES, event_contract
from approvaltrail.schemas.identity import new_producer_id
from approvaltrail.schemas.messages import DeadLetterCause, event_headers
from approvaltrail.schemas.topics import EVENTS, HEARTBEATS, SEALS
from approvaltrail.schemas.topics import topic as topic_description
from approvaltrail.store.answers import TenantScope, TimeRange
from approvaltrail.store.columns import TIME_COLUMNS
from approvaltrail.store.queries import Queries
from approvaltrail.store.writing import insert_events

if TYPE_CHECKING:
    from approvaltrail.consumers.settings import SinkSettings
    from approvaltrail.store.connection import Store

SEED = 20_261_201
LONG_AGO = timedelta(days=400)
EVERYTHING = TenantScope.everything()


def letters(store: Store) -> Sequence[Any]:
    """Return what is set aside."""
    return Queries(store).dead_letters(EVERYTHING, limit=1_000)


def poisons(journal: Journal) -> dict[DeadLetterCause, list[bytes | None]]:
    """Return bad messages of every kind, by what they are set aside for."""
    good = journal.record()[1]
    old = journal.record(occurred_at=datetime.now(UTC) - LONG_AGO)[1]
    ahead = journal.record(occurred_at=datetime.now(UTC) + timedelta(days=2))[1]
    return {
        DeadLetterCause.EMPTY: [b"", None],
        DeadLetterCause.BAD_FRAMING: [b"\xc3", b"junk", b"\0", b"\0" + good[1:], good[10:]],
        DeadLetterCause.UNKNOWN_SCHEMA: [good[:2] + b"\x01" * 8 + good[10:]],
        DeadLetterCause.UNDECODABLE: [
            good[:10],
            good[:-1],
            good + b"\0",
            good + good[10:],
            good.replace(b"prod-7", b"prod-\xff"),
        ],
        DeadLetterCause.TIME_OUT_OF_RANGE: [old, ahead],
    }


@pytest.mark.parametrize(
    "places",
    ["first", "last", "alone", "all", "every second", "scattered"],
)
async def test_p17_poison_of_every_kind_at_any_place_of_a_batch(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings], places: str
) -> None:
    """P-17: alone or many, in front, between or behind: each is set aside, the others stored."""
    journal, other, chance = Journal(), Journal(), random.Random(SEED)
    bad = [(value, cause) for cause, values in poisons(other).items() for value in values]
    chance.shuffle(bad)
    if places == "alone":
        bad = bad[:1]
    good: list[bytes | None] = []
    if places not in {"alone", "all"}:
        good = [value for _, value in journal.records(40)]
    mixed = arranged(good, [value for value, _ in bad], places, chance)
    headers = event_headers(other.producer_id, 1)
    async with running(settings(retention_days=365, flush_interval_ms=400)):
        await asyncio.gather(*(topic.send_raw(value, headers=headers, key=b"k") for value in mixed))
        await until(lambda: len(letters(store)) == len(bad), "the bad ones set aside")
        await until(lambda: len(stored_ids(store)) == len(good), "the good ones stored")
    assert_counted_once(store, journal)
    sent = [one for one in await topic.read_all(topic.events) if one.partition == 0]
    causes = {letter.offset: letter.cause for letter in letters(store)}
    found = [(one.value, causes[one.offset]) for one in sent if one.offset in causes]
    assert sorted(found, key=repr) == sorted(bad, key=repr)
    kept = [one.value for one in await topic.read_all(topic.dead)]
    assert sorted(kept, key=repr) == sorted((value for value, _ in bad), key=repr)


def arranged(
    good: list[bytes | None], bad: list[bytes | None], places: str, chance: random.Random
) -> list[bytes | None]:
    """Put the bad ones where they are wanted."""
    if places == "last":
        return good + bad
    if places == "every second":
        pairs = zip(good, bad, strict=False)
        return [one for pair in pairs for one in pair] + good[len(bad) :]
    mixed = bad + good
    if places == "scattered":
        chance.shuffle(mixed)
    return mixed


@pytest.mark.parametrize("name", [HEARTBEATS, SEALS])
async def test_bad_heartbeats_and_seals_are_set_aside_as_well(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings], name: str
) -> None:
    """The other topics take no poison either, in whatever framing."""
    async with running(settings()):
        for value in (None, b"", b"x", b"\0\0\0\0\x01" + b"y" * 30, Journal().record()[1]):
            await topic.send_raw(value, topic=name, key=b"k")
        await until(lambda: len(letters(store)) == 5, "all set aside")


ODD_HEADERS: dict[str, list[tuple[str, Any]]] = {
    "none": [],
    "without values": [("producer_id", None), ("sequence", None), ("traceparent", None)],
    "of another kind": [("producer_id", b"\xff\xfe"), ("sequence", b"-1")],
    "no number": [("producer_id", new_producer_id().encode()), ("sequence", b"9" * 400)],
    "no identity": [("producer_id", b"p" * 10_000), ("sequence", b"1")],
    "said twice": [
        *event_headers(new_producer_id(), 1),
        *event_headers(new_producer_id(), 2),
    ],
    "ours": [("dead_letter_cause", b"x"), ("dead_letter_topic", None), ("dead_letter_at", b"")],
}


@pytest.mark.parametrize("odd", ODD_HEADERS.values(), ids=ODD_HEADERS.keys())
@pytest.mark.parametrize(("key", "value"), [(None, None), (b"", b""), (None, b"junk")])
async def test_a_bad_message_with_odd_headers_is_set_aside_and_redriven(
    topic: Topic,
    store: Store,
    settings: Callable[..., SinkSettings],
    odd: list[tuple[str, Any]],
    key: bytes | None,
    value: bytes | None,
) -> None:
    """Headers may lack, repeat, or have no value; completeness answers, and a redrive sends it."""
    journal = Journal()
    async with running(settings()) as sink:
        await send_odd(topic, key, value, odd)
        await topic.send(journal, journal.records(3), partition=0)
        await until(lambda: len(stored_ids(store)) == 3, "the others stored")
        await until(lambda: len(letters(store)) == 1, "set aside")
        await asyncio.to_thread(Queries(store).completeness, EVERYTHING, datetime.now(UTC))
        assert (await redrive(settings(), store, RedriveFilter())).sent == 1
        await until(lambda: len(letters(store)) == 2, "set aside again, at its new position")
        assert sink.condition().ready
    await asyncio.to_thread(Queries(store).completeness, EVERYTHING, datetime.now(UTC))
    assert_counted_once(store, journal)


async def send_odd(
    topic: Topic, key: bytes | None, value: bytes | None, headers: list[tuple[str, Any]]
) -> None:
    """Send what aiokafka's own `send` would not take."""
    batch = topic._producer.create_batch()
    assert batch.append(timestamp=None, key=key, value=value, headers=headers)
    await (await topic._producer.send_batch(batch, topic.events, partition=0))


class NotUtf8(str):
    """A header's name as some clients would write it."""

    __slots__ = ()

    def encode(self, encoding: str = "", errors: str = "") -> bytes:
        return b"\xff\xfe"


def unreadable_batch(value: bytes) -> bytes:
    """Return a record batch that no broker refuses and no client of Python can read."""
    builder = _DefaultRecordBatchBuilderPy(2, 0, 0, -1, -1, -1, 1 << 20)
    headers: list[tuple[str, bytes | None]] = [(NotUtf8("x"), b"y")]
    now = int(datetime.now(UTC).timestamp() * 1_000)
    builder.append(0, now, b"k", value, [("fine", b"1")])
    builder.append(1, now, b"k", value, headers)
    builder.append(2, now, b"k", value, [("fine", b"1")])
    return bytes(builder.build())


@pytest.mark.parametrize("name", [EVENTS, HEARTBEATS])
async def test_a_message_that_no_client_can_read_is_passed_over_by_name(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings], name: str
) -> None:
    """It and what is behind it in its batch is set aside; all others are taken.

    All is there before the sink is, so that one fetch brings what can be read and what cannot.
    """
    journal = Journal()
    [(_, value)] = journal.records(1)
    for partition in (0, 1):
        await produce(topic, topic.prefix + name, partition, unreadable_batch(value))
    await topic.send(journal, journal.records(5))
    async with running(settings()) as sink:
        expected = 4 if name == EVENTS else 6  # an event is no heartbeat
        await until(lambda: len(letters(store)) == expected, "set aside")
        stored = 6 if name == EVENTS else 5
        await until(lambda: len(stored_ids(store)) == stored, "the others stored")
        assert sink.condition().ready
    assert {(one.partition, one.offset) for one in letters(store)} >= {
        (partition, offset) for partition in (0, 1) for offset in (1, 2)
    }


async def produce(topic: Topic, name: str, partition: int, records: bytes) -> None:
    """Give the broker a batch of records as it is."""
    client = topic._producer.client
    await client.force_metadata_update()
    await topic._producer.partitions_for(name)
    leader = client.cluster.leader_for_partition(TopicPartition(name, partition))
    request = ProduceRequest(
        transactional_id=None,
        required_acks=-1,
        timeout=10_000,
        topics=[(name, [(partition, records)])],
    )
    answer = await client.send(leader, request)
    [(_, [(_, code, *_)])] = answer.topics
    assert code == 0


async def test_headers_that_disagree_with_the_body_change_nothing(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """Who recorded an event, and under which number, is what its body says."""
    journal, victim = Journal(), new_producer_id()
    async with running(settings()):
        for sequence, value in journal.records(5):
            headers = event_headers(victim, 1_000 + sequence)
            await topic.send_raw(value, headers=headers, key=b"k")
        await until(lambda: len(stored_ids(store)) == 5, "all stored")
    assert_counted_once(store, journal)
    known = Queries(store).completeness(EVERYTHING, datetime.now(UTC)).producers
    assert [one.producer_id for one in known] == [journal.producer_id]


@pytest.mark.parametrize("field", TIME_COLUMNS)
@pytest.mark.parametrize("microseconds", [2**62, -(2**62), 253_402_300_800_000_000])
async def test_an_event_with_a_time_in_no_calendar_is_set_aside(
    topic: Topic,
    store: Store,
    settings: Callable[..., SinkSettings],
    field: str,
    microseconds: int,
) -> None:
    """Stored, nobody could read it, nor a page that it stands on."""
    journal, other = Journal(), Journal()
    async with running(settings()):
        await topic.send_raw(with_value(other.record()[1], field, microseconds), key=b"k")
        await topic.send(journal, journal.records(3), partition=0)
        await until(lambda: len(letters(store)) == 1, "set aside")
        await until(lambda: len(stored_ids(store)) == 3, "the others stored")
    now, hour = datetime.now(UTC), timedelta(hours=1)
    page = Queries(store).events(TimeRange(now - hour, now + hour), EVERYTHING)
    assert len(page.events) == 3
    expected = (
        DeadLetterCause.TIME_OUT_OF_RANGE if field == "occurred_at" else DeadLetterCause.UNDECODABLE
    )
    assert letters(store)[0].cause == expected


@pytest.mark.parametrize("field", TIME_COLUMNS)
async def test_the_last_instant_of_the_calendar_is_stored_and_read(
    store: Store, field: str
) -> None:
    """What a calendar knows is no reason to set an event aside."""
    journal = Journal()
    for microseconds in (-62_135_596_800_000_000, 253_402_300_799_999_999):
        value = with_value(journal.record()[1], field, microseconds)
        block = BlockBuilder(event_contract()).build([Message(value)])
        insert_events(store, block.data, block.fence, block.contract.fingerprint)
    rows = store.query(f"SELECT {field} FROM events ORDER BY {field}").rows
    assert [row[0].year for row in rows] == [1, 9999]


def with_value(data: bytes, field: str, microseconds: int) -> bytes:
    """Return an event's bytes with another number for one of its times."""
    schema = fastavro.parse_schema(_without_logical_types(event_contract().schema))
    record: Any = fastavro.schemaless_reader(io.BytesIO(data[HEADER_BYTES:]), schema, None)
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, {**record, field: microseconds})
    return event_contract().header + stream.getvalue()


async def test_a_redrive_of_a_redrive_ends_in_one_event(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """Driven back too early it is set aside again, and driven back once more it is stored once."""
    journal, old = Journal(), datetime.now(UTC) - LONG_AGO
    strict = settings(retention_days=365)
    async with running(strict):
        await topic.send(journal, [journal.record(occurred_at=old) for _ in range(4)], partition=0)
        await until(lambda: len(letters(store)) == 4, "set aside")
        for expected in (8, 12):
            report = await redrive(strict, store, RedriveFilter())
            assert (report.sent, report.redriven_before) == (4, expected - 8)
            await until(lambda wanted=expected: len(letters(store)) == wanted, "again")
    async with running(settings(retention_days=1_000)):
        both = [redrive(strict, store, RedriveFilter()), redrive(strict, store, RedriveFilter())]
        assert sum(report.sent for report in await asyncio.gather(*both)) >= 4
        await until(lambda: len(stored_ids(store)) == 4, "stored")
        again = await redrive(strict, store, RedriveFilter(again=True))
        assert again.sent >= 12
        assert (await redrive(strict, store, RedriveFilter())).sent == 0
    assert_counted_once(store, journal)
    waiting = store.query("SELECT count() FROM dead_letters FINAL WHERE isNull(redriven_at)")
    assert waiting.scalar() == 0


async def test_a_message_that_is_large_only_once_unpacked_is_set_aside(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """The broker holds its limit against what is sent; so does the dead-letter topic."""
    journal, large = Journal(), b"\xc3\x01" + b"\0" * (20 << 20)
    producer = AIOKafkaProducer(
        bootstrap_servers=topic.bootstrap_servers,
        compression_type="lz4",
        max_request_size=64 << 20,
    )
    await producer.start()
    try:
        async with running(settings()) as sink:
            await producer.send_and_wait(topic.events, large, key=b"k", partition=0)
            await topic.send(journal, journal.records(3), partition=0)
            await until(lambda: len(stored_ids(store)) == 3, "the others stored")
            await until(lambda: len(letters(store)) == 1, "set aside")
            assert (await redrive(settings(), store, RedriveFilter())).sent == 1
            await until(lambda: len(letters(store)) == 2, "and again")
            assert sink.condition().ready
    finally:
        await producer.stop()
    assert {one.value for one in await topic.read_all(topic.dead)} == {large}


async def test_a_bad_message_as_large_as_the_topic_takes_is_set_aside(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """Beside the largest message there is room for what a dead letter says of it."""
    largest = topic_description(EVENTS).max_message_bytes - 200  # for the batch around it
    value = random.Random(SEED).randbytes(largest)
    producer = AIOKafkaProducer(
        bootstrap_servers=topic.bootstrap_servers, max_request_size=2 * largest
    )
    await producer.start()
    try:
        with pytest.raises(MessageSizeTooLargeError):
            await producer.send_and_wait(topic.events, value + bytes(200), key=b"k", partition=0)
        async with running(settings()) as sink:
            await producer.send_and_wait(topic.events, value, key=b"k", partition=0)
            await until(lambda: len(letters(store)) == 1, "set aside")
            assert (await redrive(settings(), store, RedriveFilter())).sent == 1
            await until(lambda: len(letters(store)) == 2, "and again")
            assert sink.condition().ready
    finally:
        await producer.stop()
    assert {one.value for one in await topic.read_all(topic.dead)} == {value}


async def test_a_topic_made_anew_is_read_from_its_beginning(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """Positions beyond the topic's end lose nothing: it is read from where it begins."""
    journal = Journal()
    async with running(settings()):
        await topic.send(journal, journal.records(10), partition=0)
        await until(lambda: len(stored_ids(store)) == 10, "the first stored")
    admin = AIOKafkaAdminClient(bootstrap_servers=topic.bootstrap_servers)
    await admin.start()
    await admin.delete_topics([topic.events])
    await admin.close()
    await ensure_topics(topic.bootstrap_servers, topic.prefix, single_machine=True)
    async with running(settings()):
        await topic.send(journal, journal.records(5), partition=0)
        await until(lambda: len(stored_ids(store)) == 15, "those after it stored")
    assert_counted_once(store, journal)


async def test_partitions_that_are_added_are_read_from_their_beginning(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """A topic that grows under a running sink loses nothing of what is sent there."""
    journal = Journal()
    admin = AIOKafkaAdminClient(bootstrap_servers=topic.bootstrap_servers)
    await admin.start()
    async with running(settings()) as sink:
        await admin.create_partitions({topic.events: NewPartitions(5)})
        await topic._producer.client.force_metadata_update()
        for partition in range(5):
            await topic.send(journal, journal.records(4), partition=partition)
        assert sink._fetch is not None
        await sink._fetch._consumer._client.force_metadata_update()  # it looks every five minutes
        await until(lambda: len(stored_ids(store)) == 20, "all stored")
    await admin.close()
    assert_counted_once(store, journal)
