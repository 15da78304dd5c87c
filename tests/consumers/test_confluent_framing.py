"""A sink takes both framings from one topic; what a registry says of an id is asked, never guessed.

The bytes that count are those of the journal: an event is the same whatever stood before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.consumers.parts import (
    Journal,
    Topic,
    assert_counted_once,
    running,
    stored_ids,
    until,
)
from tests.support.engine_faults import Close, Fault, FaultProxy, Status
from tests.support.schema_registry import INTERFACE

from approvaltrail.consumers import headers as headers_module
from approvaltrail.consumers.block import BlockBuilder
from approvaltrail.consumers.headers import Headers
from approvaltrail.consumers.redrive import RedriveFilter, redrive
from approvaltrail.schemas.contract import HEADER_BYTES, confluent_header, event_contract
from approvaltrail.schemas.encoding import encode_recorded
from approvaltrail.schemas.messages import DeadLetterCause, event_headers
from approvaltrail.schemas.registry import Registry
from approvaltrail.schemas.registry_settings import RegistrySettings
from approvaltrail.store.answers import TenantScope
from approvaltrail.store.queries import Queries
from approvaltrail.store.rows import recorded_event

if TYPE_CHECKING:
    from tests.support.schema_registry import RegistryProcess

    from approvaltrail.consumers.settings import SinkSettings
    from approvaltrail.store.connection import Store

LONG_AGO = timedelta(days=400)


async def registered(schema_registry: RegistryProcess, topic: Topic) -> bytes:
    """Register the event's schema for a topic and return Confluent's header for it."""
    registry = Registry(RegistrySettings(schema_registry_url=schema_registry.url))
    return confluent_header(await registry.id_of(event_contract(), topic.events, register=True))


def other_schema(schema_registry: RegistryProcess, topic: Topic) -> bytes:
    """Register a schema that is no event of ours and return its header."""
    schema = {"type": "record", "name": "Order", "fields": [{"name": "sequence", "type": "long"}]}
    answer = httpx.post(
        f"{schema_registry.url}/subjects/{topic.prefix}orders-value/versions",
        json={"schema": json.dumps(schema)},
        trust_env=False,
    )
    return confluent_header(answer.raise_for_status().json()["id"])


def framed(
    records: Sequence[tuple[int, bytes]], header: bytes, every: int = 1
) -> list[tuple[int, bytes]]:
    """Put every so-manieth event into Confluent's framing."""
    return [
        (number, header + data[HEADER_BYTES:] if number % every == 0 else data)
        for number, data in records
    ]


async def test_a_topic_may_hold_both_framings(
    topic: Topic,
    store: Store,
    settings: Callable[..., SinkSettings],
    schema_registry: RegistryProcess,
) -> None:
    """Mixed within every batch, all are stored once, and re-encode to the journal's bytes."""
    journal, header = Journal(), await registered(schema_registry, topic)
    records = journal.records(300)
    async with running(settings(schema_registry_url=schema_registry.url)) as sink:
        await topic.send(journal, framed(records, header, every=3))
        await until(lambda: len(stored_ids(store)) == 300, "all stored")
        assert sink.condition().ready
    assert_counted_once(store, journal)
    rows = store.query("SELECT * FROM events ORDER BY sequence LIMIT 1 BY event_id").dicts()
    assert [encode_recorded(recorded_event(row)) for row in rows] == [data for _, data in records]
    assert {row["schema_fingerprint"] for row in rows} == {event_contract().fingerprint}


async def test_p17_bad_messages_in_confluents_framing_become_dead_letters_with_their_bytes(
    topic: Topic,
    store: Store,
    settings: Callable[..., SinkSettings],
    schema_registry: RegistryProcess,
) -> None:
    """P-17: each kind has its cause, and its bytes stay as they came; the good ones are stored."""
    journal, other = Journal(), Journal()
    header = await registered(schema_registry, topic)
    foreign = other_schema(schema_registry, topic)
    good = header + other.record()[1][HEADER_BYTES:]
    old = header + other.record(occurred_at=datetime.now(UTC) - LONG_AGO)[1][HEADER_BYTES:]
    bad = {
        good[:-3]: DeadLetterCause.UNDECODABLE,
        good + b"\0": DeadLetterCause.UNDECODABLE,
        good.replace(b"prod-7", b"prod-\xff"): DeadLetterCause.UNDECODABLE,
        old: DeadLetterCause.TIME_OUT_OF_RANGE,
        header: DeadLetterCause.UNDECODABLE,
        header[:4]: DeadLetterCause.BAD_FRAMING,
        b"\0": DeadLetterCause.BAD_FRAMING,
        confluent_header(999_999) + good[5:]: DeadLetterCause.UNKNOWN_SCHEMA,
        confluent_header(2**32 - 1) + good[5:]: DeadLetterCause.UNKNOWN_SCHEMA,
        foreign + good[5:]: DeadLetterCause.UNKNOWN_SCHEMA,
    }
    chosen = settings(retention_days=365, schema_registry_url=schema_registry.url)
    async with running(chosen):
        for value in bad:
            await topic.send(journal, framed(journal.records(2), header), partition=1)
            await topic.send_raw(value, partition=1, headers=event_headers(other.producer_id, 1))
        await until(lambda: len(stored_ids(store)) == 2 * len(bad), "the good ones stored")
        await until(lambda: len(letters(store)) == len(bad), "the bad ones set aside")
    assert_counted_once(store, journal)
    causes = {letter.offset: letter.cause for letter in letters(store)}
    sent = [one for one in await topic.read_all(topic.events) if one.partition == 1]
    assert {one.value: causes[one.offset] for one in sent if one.offset in causes} == bad
    assert {one.value for one in await topic.read_all(topic.dead)} == set(bad)


async def test_a_framed_dead_letter_is_redriven_as_it_was(
    topic: Topic,
    store: Store,
    settings: Callable[..., SinkSettings],
    schema_registry: RegistryProcess,
) -> None:
    """Set aside by a sink without a registry, stored by a redrive before one that has it."""
    journal, header = Journal(), await registered(schema_registry, topic)
    records = framed(journal.records(6), header, every=2)
    async with running(settings()):
        await topic.send(journal, records)
        await until(lambda: len(letters(store)) == 3, "framed ones set aside")
        await until(lambda: len(stored_ids(store)) == 3, "the others stored")
    assert {letter.cause for letter in letters(store)} == {DeadLetterCause.BAD_FRAMING}
    assert "APPROVALTRAIL_SCHEMA_REGISTRY_URL is not set" in letters(store)[0].detail
    async with running(settings(schema_registry_url=schema_registry.url)):
        assert (await redrive(settings(), store, RedriveFilter())).sent == 3
        await until(lambda: len(stored_ids(store)) == 6, "all stored")
    assert_counted_once(store, journal)


@pytest.mark.parametrize(
    "fault", [Close(), Close(reset=False), Status(503), Status(404), Status(401)], ids=repr
)
async def test_while_the_registry_is_away_framed_messages_wait(
    topic: Topic,
    store: Store,
    settings: Callable[..., SinkSettings],
    schema_registry: RegistryProcess,
    registry_faults: FaultProxy,
    fault: Fault,
) -> None:
    """None becomes a dead letter by an outage, nothing is committed past them, health says so."""
    journal, header = Journal(), await registered(schema_registry, topic)
    registry_faults.inject(fault, match="", times=1_000_000)
    chosen = settings(schema_registry_url=registry_faults.url + INTERFACE)
    async with running(chosen) as sink:
        await topic.send(journal, framed(journal.records(20), header, every=2), partition=0)
        await until(lambda: len(stored_ids(store)) == 10, "what needs no registry is stored")
        await until(lambda: sink.condition().reasons, "health says so")
        assert "schema registry" in sink.condition().reasons[0]
        assert (await topic.committed(chosen.sink_group_id))[0] is None
        registry_faults.clear()
        await until(lambda: len(stored_ids(store)) == 20, "all stored")
        await until(lambda: sink.condition().ready, "well again")
    assert_counted_once(store, journal)
    assert not letters(store)


async def test_a_stop_while_the_registry_is_away_ends_and_loses_nothing(
    topic: Topic,
    store: Store,
    settings: Callable[..., SinkSettings],
    schema_registry: RegistryProcess,
    registry_faults: FaultProxy,
) -> None:
    """What waits for the registry is read again by the next start."""
    journal, header = Journal(), await registered(schema_registry, topic)
    registry_faults.inject(Close(), match="", times=1_000_000)
    chosen = settings(
        schema_registry_url=registry_faults.url + INTERFACE, drain_timeout_seconds=0.3
    )
    async with running(chosen) as sink:
        await topic.send(journal, framed(journal.records(5), header))
        await until(lambda: sink.condition().reasons, "it waits")
    registry_faults.clear()
    async with running(chosen):
        await until(lambda: len(stored_ids(store)) == 5, "all stored")
    assert_counted_once(store, journal)


def letters(store: Store) -> Sequence[Any]:
    """Return what is set aside."""
    return Queries(store).dead_letters(TenantScope.everything())


class Counting:
    """A registry that knows nothing, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def contract_of(self, number: int) -> None:
        self.asked.append(number)


def strangers(*numbers: int) -> Mapping[bytes, list[object]]:
    return {confluent_header(number): [object()] for number in numbers}


async def test_a_flood_of_unknown_ids_asks_the_registry_little() -> None:
    """Each unknown id is asked for once in a while, and few of one batch: none stalls the sink."""
    registry, now = Counting(), [0.0]
    known = Headers(registry, longest_wait_seconds=1, clock=lambda: now[0])  # type: ignore[arg-type]
    flood = strangers(*range(1, 5_001))
    assert len(await known.introduce(flood, lambda: True)) == 5_000
    assert registry.asked == list(range(1, 101))
    await known.introduce(strangers(*range(1, 101)), lambda: True)
    assert len(registry.asked) == 100
    now[0] += headers_module._UNKNOWN_FOR_SECONDS
    await known.introduce(strangers(7), lambda: True)
    assert registry.asked[100:] == [7]


def test_a_framed_message_is_judged_by_its_journals_bytes() -> None:
    """Single-object bytes come out of either framing."""
    _, data = Journal().record()
    header = confluent_header(258)
    assert header == b"\0\0\0\x01\x02"

    class Framed:
        partition, offset, value = 0, 0, header + data[HEADER_BYTES:]

    class Plain:
        partition, offset, value = 0, 0, data

    builder = BlockBuilder(event_contract(), header)
    assert builder.single_object(Framed()) == data
    assert BlockBuilder(event_contract()).single_object(Plain()) == data
