"""What the broker does not give: noticed, said, and asked for again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete
from aiokafka.structs import TopicPartition
from tests.consumers.parts import (
    Journal,
    Topic,
    assert_counted_once,
    metric,
    running,
    stored_ids,
    until,
)

from approvaltrail.consumers.continuity import Continuity, Verdict
from approvaltrail.consumers.repair import RepairPlan
from approvaltrail.schemas.messages import Heartbeat, ProducerState, RepairRequest
from approvaltrail.schemas.topics import HEARTBEATS, REPAIRS
from approvaltrail.store.answers import (
    CompletenessState,
    Gap,
    ProducerCondition,
    TenantScope,
)
from approvaltrail.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from approvaltrail.consumers.settings import SinkSettings
    from approvaltrail.store.connection import Store

EVERYTHING = TenantScope.everything()


def heartbeat(journal: Journal, at: datetime) -> bytes:
    """Say how far a journal came."""
    return Heartbeat(
        producer_id=journal.producer_id,
        service="tidb-mcp",
        instance="pod-1",
        sent_at=at,
        started_at=at - timedelta(hours=1),
        state=ProducerState.LIVE,
        last_sequence=len(journal.event_ids),
        last_recorded_at=at,
    ).encode()


async def test_s13_a_range_that_the_broker_passes_over_is_seen_shown_and_asked_for(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings]
) -> None:
    """S-13: 500 events that a read leaves out are counted, shown as a gap, and re-requested."""
    journal = Journal()
    chosen = settings(repair_interval_seconds=0.3, in_flight_seconds=1)
    async with running(settings()):
        await topic.send(journal, journal.records(10), partition=0)
        await until(lambda: len(stored_ids(store)) == 10, "the first stored")
    lost = journal.records(500)
    await topic.send(journal, lost, partition=0)
    admin = AIOKafkaAdminClient(bootstrap_servers=topic.bootstrap_servers)
    await admin.start()
    await admin.delete_records({TopicPartition(topic.events, 0): RecordsToDelete(510)})
    await admin.close()
    async with running(chosen) as sink:
        await topic.send(journal, journal.records(10), partition=0)
        await until(lambda: len(stored_ids(store)) == 20, "what is left is stored")
        long_ago = datetime.now(UTC) - timedelta(minutes=10)
        await topic.send_raw(heartbeat(journal, long_ago), topic=HEARTBEATS)
        await topic.send_raw(heartbeat(journal, datetime.now(UTC)), topic=HEARTBEATS)
        assert metric(sink, "skipped_offsets_total", topic=topic.events) == 500
        await until(lambda: metric(sink, "repair_requests_total") == 1, "asked for")
        assert metric(sink, "missing_numbers") == 500
        assert metric(sink, "complete_until_timestamp_seconds") == 0
        shown = Queries(store).completeness(EVERYTHING, datetime.now(UTC))
        assert shown.state is CompletenessState.INCOMPLETE
        assert shown.producers[0].gaps == (Gap(11, 510),)
        [asked] = [
            RepairRequest.decode(one.value) for one in await topic.read_all(topic.prefix + REPAIRS)
        ]
        assert (asked.producer_id, asked.first_sequence, asked.last_sequence) == (
            journal.producer_id,
            11,
            510,
        )
        await topic.send(journal, lost, partition=0)
        await until(lambda: len(stored_ids(store)) == 520, "sent again")
        await until(lambda: metric(sink, "missing_numbers") == 0, "the metric says so too")
        assert metric(sink, "complete_until_timestamp_seconds") > long_ago.timestamp()
    assert_counted_once(store, journal)


class At:
    """A message as far as its position."""

    def __init__(self, offset: int) -> None:
        self.offset = offset


def at(*offsets: int) -> list[At]:
    """Return messages at these positions."""
    return [At(offset) for offset in offsets]


def test_a_position_passed_over_is_read_again_once_and_then_reported() -> None:
    """A gap is first doubted, then believed; what follows it is taken either way."""
    partition, continuity = TopicPartition("events", 0), Continuity()
    continuity.start(partition, 5)
    assert continuity.read(partition, at(5, 6)).verdict is Verdict.TAKE
    doubted = continuity.read(partition, at(9, 10))
    assert (doubted.verdict, doubted.expected, doubted.skipped) == (Verdict.READ_AGAIN, 7, 2)
    believed = continuity.read(partition, at(9, 10))
    assert (believed.verdict, believed.skipped) == (Verdict.TAKE_WITH_GAP, 2)
    assert continuity.read(partition, at(11)).verdict is Verdict.TAKE
    assert continuity.read(partition, at(12, 14)).verdict is Verdict.READ_AGAIN
    assert continuity.read(partition, at(12, 13, 14)).verdict is Verdict.TAKE


def test_messages_at_stored_positions_count_as_repeated() -> None:
    """What was stored and is read again is known by its position."""
    partition, continuity = TopicPartition("events", 0), Continuity()
    continuity.start(partition, None)
    continuity.stored(partition, 3)
    assert continuity.read(partition, at(1, 2, 3, 4)).repeated == 2
    assert continuity.read(partition, at(5)).repeated == 0


class Producer:
    """A producer's status as far as repairs look at it."""

    def __init__(self, condition: ProducerCondition, *gaps: Gap) -> None:
        self.producer_id = Journal().producer_id
        self.condition = condition
        self.gaps = gaps


def test_repairs_are_asked_for_sparingly() -> None:
    """The same gap again only after a while, a hundred at once, and none of a retired producer."""
    clock = [100.0]
    plan = RepairPlan(60, clock=lambda: clock[0])
    live: Any = Producer(ProducerCondition.LIVE, *(Gap(one, one) for one in range(1, 400, 3)))
    gone: Any = Producer(ProducerCondition.RETIRED, Gap(1, 2))
    assert len(plan.due([gone, live])) == 100
    assert len(plan.due([gone, live])) == 33
    assert plan.due([gone, live]) == []
    clock[0] += 61
    assert plan.due([live])[0].first_sequence == 1
