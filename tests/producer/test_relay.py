"""The relay: from the journal to Kafka, in order by key, its position behind the broker's word."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from aiokafka import AIOKafkaProducer
from aiokafka.partitioner import DefaultPartitioner, murmur2
from hypothesis import given
from hypothesis import strategies as st
from tests.producer.support import (
    bodies_in,
    delivered_events,
    heartbeats,
    issued,
    journal_in,
    make_topics,
    messages_of,
    refused,
    seals,
    settings_for,
    state_in,
    until,
)

from approvaltrail.producer import Producer
from approvaltrail.producer import partitions as ours
from approvaltrail.producer.pacing import Pacing
from approvaltrail.producer.seals import verify_seals
from approvaltrail.schemas import topics
from approvaltrail.schemas.encoding import instant_of, microseconds
from approvaltrail.schemas.events import EventType, Reason
from approvaltrail.schemas.messages import (
    Probe,
    ProducerState,
    RepairRequest,
    Seal,
    owner_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from approvaltrail.local.broker import BrokerProcess


@given(st.binary(max_size=80), st.integers(1, 60))
def test_partitions_are_kafkas_own(key: bytes, count: int) -> None:
    """A key's partition is the one that Kafka's default partitioner chooses."""
    assert ours.murmur2(key) == murmur2(key)
    expected = DefaultPartitioner()(key, list(range(count)), list(range(count)))
    assert ours.partitioner(count)(key) == expected


async def test_messages_carry_the_journals_bytes(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str
) -> None:
    """A message is the journal's bytes, keyed by nonce or producer, with owner and time."""
    await make_topics(kafka.bootstrap_servers, topic_prefix)
    producer = Producer(settings_for(tmp_path, kafka.bootstrap_servers, topic_prefix=topic_prefix))
    producer.start()
    nonce = "the-nonce"
    events = [
        issued(nonce=nonce),
        refused(),
        issued(nonce=nonce, event_type=EventType.ACCEPTED),
        issued(nonce=nonce, event_type=EventType.REPLAYED, reason=Reason.ALREADY_USED),
    ]
    recorded = [await producer.record(event) for event in events]
    report = await producer.close(10)
    assert (report.pending, report.in_time) == (0, True)
    messages = await messages_of(
        kafka.bootstrap_servers,
        topics.prefixed(topics.EVENTS, topic_prefix),
        lambda found: len(found) >= 4,
    )
    by_number = {owner_of(message.headers)[1]: message for message in messages}
    assert [by_number[number].value for number in (1, 2, 3, 4)] == bodies_in(journal_in(tmp_path))
    assert {owner_of(message.headers)[0] for message in messages} == {recorded[0].producer_id}
    assert [by_number[number].key.decode() for number in (1, 2, 3, 4)] == [
        nonce,
        recorded[0].producer_id,
        nonce,
        nonce,
    ]
    assert len({by_number[number].partition for number in (1, 3, 4)}) == 1
    offsets = [by_number[number].offset for number in (1, 3, 4)]
    assert offsets == sorted(offsets)
    for number, one in enumerate(recorded, start=1):
        assert by_number[number].timestamp == microseconds(one.recorded_at) // 1_000
    state = state_in(journal_in(tmp_path))
    assert (state["relayed_sequence"], state["relayed_seal"]) == (4, state["seal_number"])


async def test_seals_and_heartbeats(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str
) -> None:
    """Seals arrive and verify against the topic's events; the last heartbeat says closed."""
    await make_topics(kafka.bootstrap_servers, topic_prefix)
    producer = Producer(
        settings_for(tmp_path, kafka.bootstrap_servers, topic_prefix=topic_prefix, seal_events=40)
    )
    producer.start()
    producer.report_ledger(Probe.OK)
    producer.report_scrubbed(2)
    for _ in range(100):
        await producer.record(issued())
    await until(lambda: producer.health().pending == 0, "delivered")
    await producer.close(10)
    encoded = await seals(
        kafka.bootstrap_servers,
        topic_prefix,
        lambda found: found and found[-1].last_sequence == 100,
    )
    events = await delivered_events(kafka.bootstrap_servers, topic_prefix, 100)
    assert [event.sequence for event in events] == list(range(1, 101))
    bodies = bodies_in(journal_in(tmp_path))
    assert verify_seals(encoded, lambda first, last: bodies[first - 1 : last]) == ()
    assert Seal.decode(encoded[0]).producer_id == events[0].producer_id
    beats = await heartbeats(
        kafka.bootstrap_servers, topic_prefix, lambda found: found[-1:] and _closed(found[-1])
    )
    last = beats[-1]
    assert (last.last_sequence, last.relayed_sequence, last.pending) == (100, 100, 0)
    assert (last.ledger_probe, last.scrubbed_values) == (Probe.OK, 2)
    assert (last.service, last.instance) == ("tidb-mcp", "pod-1")
    assert beats[0].state is ProducerState.LIVE


def _closed(heartbeat: object) -> bool:
    return heartbeat.state is ProducerState.CLOSED


async def test_health_of_a_delivering_producer(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str
) -> None:
    """A producer whose events reach the broker is live, ready and not degraded."""
    await make_topics(kafka.bootstrap_servers, topic_prefix)
    producer = Producer(settings_for(tmp_path, kafka.bootstrap_servers, topic_prefix=topic_prefix))
    producer.start()
    await producer.record(issued())
    await until(lambda: producer.health().pending == 0, "delivered")
    health = producer.health()
    assert (health.live, health.ready, health.degraded, health.reasons) == (True, True, False, ())
    assert health.relay_state == "connected"
    await producer.close(5)


async def test_a_missing_topic_is_named(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str
) -> None:
    """While a topic is missing, health names it and the mending; then everything is delivered."""
    settings = settings_for(
        tmp_path, kafka.bootstrap_servers, topic_prefix=topic_prefix, relay_connect_seconds=1.0
    )
    await make_topics(kafka.bootstrap_servers, topic_prefix, topics.EVENTS, topics.HEARTBEATS)
    producer = Producer(settings)
    producer.start()
    await producer.record(issued())

    def named() -> bool:
        texts = [reason.text for reason in producer.health().reasons]
        missing = topics.prefixed(topics.SEALS, topic_prefix)
        return any(missing in text and "migrate" in text for text in texts)

    await until(named, "health names the topic")
    assert producer.health().ready
    await make_topics(kafka.bootstrap_servers, topic_prefix, topics.SEALS)
    await until(lambda: producer.health().pending == 0, "delivered")
    await producer.close(5)


async def test_repair_sends_a_range_again(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str
) -> None:
    """A request for a range is served from the journal once, also across a restart."""
    servers = kafka.bootstrap_servers
    await make_topics(servers, topic_prefix)
    settings = settings_for(tmp_path, servers, topic_prefix=topic_prefix)
    producer = Producer(settings)
    producer.start()
    recorded = [await producer.record(issued()) for _ in range(30)]
    await until(lambda: producer.health().pending == 0, "delivered")
    request = RepairRequest(
        producer_id=recorded[0].producer_id,
        first_sequence=11,
        last_sequence=20,
        requested_at=instant_of(microseconds(recorded[-1].recorded_at) + 1),
    )
    asking = AIOKafkaProducer(bootstrap_servers=servers)
    await asking.start()
    topic = topics.prefixed(topics.REPAIRS, topic_prefix)
    for value in (b"not a request", request.encode()):
        await asking.send_and_wait(topic, value, key=request.producer_id.encode())
    await asking.stop()

    async def sent_times(enough: int) -> collections.Counter[int]:
        messages = await messages_of(
            servers,
            topics.prefixed(topics.EVENTS, topic_prefix),
            lambda found: len(found) >= enough,
        )
        return collections.Counter(owner_of(message.headers)[1] for message in messages)

    assert await sent_times(40) == dict.fromkeys(range(1, 31), 1) | dict.fromkeys(range(11, 21), 2)
    await producer.close(5)
    again = Producer(settings)
    again.start()
    await again.record(issued())
    await until(lambda: again.health().pending == 0, "delivered")
    await again.close(5)
    assert state_in(journal_in(tmp_path))["repaired_at"] == microseconds(request.requested_at)
    assert (await sent_times(41)).total() == 41


def test_pacing() -> None:
    """A backlog is sent with rests while somebody records, and at full speed while nobody does."""
    now = [0.0]
    pacing = Pacing(10_000, clock=lambda: now[0])
    pacing.rest(0, 1_000, backlog=0)
    now[0] += 0.05
    assert pacing.rest(2_000, 1_000, backlog=5_000) == 0.0
    now[0] += 0.05
    assert round(pacing.rest(2_000, 1_500, backlog=5_000), 6) == 0.15
    now[0] += 0.15
    now[0] += 0.3
    assert pacing.rest(2_000, 2_500, backlog=5_000) == 0.0, "slower than the pace anyway"
