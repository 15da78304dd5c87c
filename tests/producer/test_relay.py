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
from approvaltrail.producer.delivery import Delivery
from approvaltrail.producer.pacing import Pacing, give_way
from approvaltrail.producer.repairs import Repair
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


def test_a_backlog_rests_while_somebody_records() -> None:
    """A backlog goes at full speed while nobody records, and at its pace while anybody does."""
    now = [100.0]
    pacing = Pacing(10_000, clock=lambda: now[0])

    def rest_after(seconds: float, recorded: int, backlog: int = 5_000) -> float:
        now[0] += seconds
        rest = round(pacing.rest(2_000, recorded, backlog=backlog), 6)
        now[0] += rest
        return rest

    assert rest_after(0.05, 1_000) == 0.0, "what was there at the start was not recorded now"
    assert rest_after(0.05, 1_000) == 0.0
    assert rest_after(0.05, 1_001) == 0.15, "one caller is enough"
    assert rest_after(0.05, 1_001) == 0.15, "and more are expected"
    assert rest_after(0.3, 1_002) == 0.0, "slower than the pace anyway"
    assert rest_after(0.05, 1_003, backlog=0) == 0.0, "there is no backlog"
    assert rest_after(0.6, 1_003) == 0.0, "nobody records any more"


def test_the_relay_gives_way_for_a_bounded_time() -> None:
    """The relay stands back while somebody waits for the disk, no longer than that, and goes on."""
    looks = iter([True, True, False])
    give_way(lambda: next(looks))
    assert list(looks) == []
    asked = []
    give_way(lambda: asked.append(1) is None)
    assert 1 < len(asked) < 20


class Collected:
    """Where a delivery's rows go, in place of a broker."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    async def send_events(self, producer_id: str, rows: list) -> list:
        self.numbers += [row[0] for row in rows]
        return []


async def test_what_cannot_be_sent_again_is_declared_lost(tmp_path: Path) -> None:
    """A request for what the journal has discarded ends in a declared loss, and not in silence."""
    small = {"journal_limit_bytes": 1024 * 1024, "journal_unverified_share": 0.05}
    producer = Producer(settings_for(tmp_path, **small))  # it discards early what is delivered
    producer.start()
    await producer.record_many([issued(plan_summary="z" * 1_900) for _ in range(30)])
    journal = producer._journal
    await until(lambda: journal.sealed.sequence == 30, "it is sealed")
    journal.progress.advance(20)
    journal.progress.advance_seal(1)
    await until(lambda: journal.oldest_sequence == 21, "what was delivered is discarded")
    link, metrics = Collected(), producer.metrics.relay
    delivery = Delivery(journal, metrics, 500)
    for first, last in ((11, 25), (11, 25), (15, 16), (26, 90)):
        delivery.repairs.append(Repair(first_sequence=first, last_sequence=last, requested_at=1))
    while await delivery.repair_step(link):
        pass
    delivery.close()
    assert link.numbers == [*range(21, 26), *range(21, 26), *range(26, 31)]
    (lost,) = journal.progress.lost
    assert (lost.first_sequence, lost.last_sequence) == (11, 20), "once, and nothing never recorded"
    assert "retention" in lost.reason
    assert "events_lost" in [reason.code for reason in producer.health().reasons]
    await producer.close(0.5)
    again = Producer(settings_for(tmp_path, **small))
    again.start()
    assert again._journal.progress.lost == (lost,), "a restart still says so"
    await again.close(0.5)
