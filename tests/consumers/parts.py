"""What the sink's tests share: a journal to produce from, a running sink, and exact questions."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import TopicPartition
from tests.support.processes import wait_until

from approvaltrail.consumers.settings import SinkSettings
from approvaltrail.consumers.sink import Sink
from approvaltrail.schemas.encoding import encode_event, producer_stamp, stamp
from approvaltrail.schemas.events import ApprovalEvent, EventType, NonceTrust
from approvaltrail.schemas.identity import new_event_id, new_producer_id
from approvaltrail.schemas.messages import event_headers
from approvaltrail.schemas.topics import DEAD, EVENTS
from approvaltrail.store.connection import Store

PATIENCE_SECONDS = 90.0
PARTITIONS = 3
"""Of each topic on one machine."""


async def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition, asked outside of the event loop; fail by name past the deadline."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:g} s: {what}"
        await asyncio.sleep(0.02)


@dataclass(frozen=True)
class Message:
    """A Kafka message as far as a block looks at it."""

    value: bytes | None
    offset: int = 0
    partition: int = 0


@dataclass
class Journal:
    """Numbers events as a producer does, and remembers their identities."""

    producer_id: str = field(default_factory=new_producer_id)
    event_ids: list[str] = field(default_factory=list)

    def record(self, **values: Any) -> tuple[int, bytes]:
        """Return the next event's sequence and bytes."""
        event = ApprovalEvent(
            **{
                "event_id": new_event_id(),
                "event_type": EventType.ISSUED,
                "occurred_at": datetime.now(UTC),
                "nonce": f"nonce-{len(self.event_ids)}",
                "nonce_trust": NonceTrust.VERIFIED,
                "tenant": "acme",
                "tool": "tidb_delete_cluster",
                "target": "prod-7",
                "attributes": (("region", "eu"),),
                **values,
            }
        )
        self.event_ids.append(event.event_id)
        sequence = len(self.event_ids)
        producer = producer_stamp(self.producer_id, "tidb-mcp", "pod-1")
        return sequence, stamp(sequence, time.time_ns() // 1000, producer) + encode_event(event)

    def records(self, count: int) -> list[tuple[int, bytes]]:
        """Return so many events."""
        return [self.record() for _ in range(count)]


class Topic:
    """Sends to the topic of events and reads what became of it."""

    def __init__(self, producer: AIOKafkaProducer, bootstrap_servers: str, prefix: str) -> None:
        self._producer = producer
        self.bootstrap_servers = bootstrap_servers
        self.prefix = prefix
        self.events = f"{prefix}{EVENTS}"
        self.dead = f"{prefix}{DEAD}"

    async def send(
        self, journal: Journal, records: Iterable[tuple[int, bytes]], partition: int | None = None
    ) -> list[int]:
        """Send a journal's events as the relay does and return their offsets."""
        futures = [
            await self._producer.send(
                self.events,
                value,
                key=f"key-{sequence}".encode(),
                partition=partition,
                headers=event_headers(journal.producer_id, sequence),
            )
            for sequence, value in records
        ]
        return [metadata.offset for metadata in await asyncio.gather(*futures)]

    async def send_raw(
        self,
        value: bytes | None,
        *,
        topic: str = EVENTS,
        partition: int = 0,
        headers: Sequence[tuple[str, bytes]] = (),
        key: bytes | None = None,
    ) -> int:
        """Send bytes as they are and return their offset."""
        metadata = await self._producer.send_and_wait(
            self.prefix + topic, value, key=key, partition=partition, headers=list(headers)
        )
        return int(metadata.offset)

    async def read_all(self, topic: str) -> list[Any]:
        """Return everything that a topic holds now."""
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=self.bootstrap_servers, auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            partitions = list(consumer.assignment())
            ends = await consumer.end_offsets(partitions)
            records: list[Any] = []
            while any([await consumer.position(one) < end for one, end in ends.items()]):
                for found in (await consumer.getmany(timeout_ms=200)).values():
                    records += found
        finally:
            await consumer.stop()
        return records

    async def committed(self, group: str, topic: str = EVENTS) -> dict[int, int | None]:
        """Return each partition's committed offset."""
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap_servers, group_id=group, enable_auto_commit=False
        )
        await consumer.start()
        try:
            name = self.prefix + topic
            return {
                number: await consumer.committed(TopicPartition(name, number))
                for number in range(PARTITIONS)
            }
        finally:
            await consumer.stop()


@contextlib.asynccontextmanager
async def running(settings: SinkSettings) -> AsyncIterator[Sink]:
    """Run a sink; when the block ends, stop it in order and raise what went wrong in it."""
    stop, sink = asyncio.Event(), Sink(settings)
    task = asyncio.create_task(sink.run(stop))
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not sink.condition().details["partitions"] and not task.done():
            assert time.monotonic() < deadline, f"sink not ready: {sink.condition()}"
            await asyncio.sleep(0.02)
        yield sink
    finally:
        stop.set()
        await asyncio.wait_for(task, PATIENCE_SECONDS)


def stored_ids(store: Store) -> set[str]:
    """Return the identity of every stored event."""
    return {str(row[0]) for row in store.query("SELECT DISTINCT event_id FROM events").rows}


def counted(store: Store) -> int:
    """Return how many events the counting tables know: sets of sequences, never rows."""
    rows = store.query(
        "SELECT sum(events) FROM (SELECT groupBitmapMerge(sequences) AS events FROM count_1h "
        "GROUP BY bucket, event_type, reason, producer_id, epoch)"
    )
    return int(rows.scalar() or 0)


def assert_counted_once(store: Store, journal: Journal) -> None:
    """Hold rows, counts and coverage to what the journal recorded."""
    assert stored_ids(store) == set(journal.event_ids)
    # an insert fills the table first and its views after it
    wait_until(lambda: counted(store) == len(journal.event_ids), "each event counts once")
    wait_until(lambda: _covered(store, journal) == len(journal.event_ids), "each is covered")


def _covered(store: Store, journal: Journal) -> int:
    rows = store.query(
        "SELECT sum(numbers) FROM (SELECT groupBitmapMerge(sequences) AS numbers FROM seq_cover "
        "WHERE producer_id = {producer_id:UUID} GROUP BY chunk)",
        {"producer_id": journal.producer_id},
    )
    return int(rows.scalar() or 0)


def metric(sink: Sink, name: str, **labels: str) -> float:
    """Return a metric's value, 0 when it was never touched."""
    return sink.metrics.registry.get_sample_value(f"approvaltrail_sink_{name}", labels) or 0.0


def misframed(body: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Damage an event's body: cut it, lengthen it, forge a neighbour in it, or change bytes."""
    damaged = bytearray(body)
    match chance.randrange(5):
        case 0:
            return bytes(damaged[: chance.randrange(len(damaged))])
        case 1:
            return bytes(damaged) + chance.randbytes(chance.randrange(1, 9))
        case 2:
            return bytes(damaged) + b"\x00\x02" + chance.choice(others)
        case 3:
            at = chance.randrange(len(damaged))
            return bytes(damaged[:at]) + chance.choice(others) + bytes(damaged[at:])
    for _ in range(chance.choice((1, 1, 2, 4))):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return bytes(damaged)
