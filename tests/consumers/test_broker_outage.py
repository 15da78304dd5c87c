"""The broker is absent at the start, is killed under load, and comes back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest_asyncio
from aiokafka import AIOKafkaProducer
from tests.consumers.parts import Journal, Topic, assert_counted_once, stored_ids, until

from approvaltrail.consumers.settings import SinkSettings
from approvaltrail.consumers.sink import Sink
from approvaltrail.consumers.topics_admin import ensure_topics
from approvaltrail.local.broker import BrokerProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from approvaltrail.store.connection import Store


@pytest_asyncio.fixture
async def own_broker(kafka: BrokerProcess, tmp_path: Path) -> AsyncIterator[BrokerProcess]:
    """Give a broker of the test's own, which may be killed; `kafka` says that one can run here."""
    assert kafka.running
    broker = BrokerProcess(tmp_path / "kafka")
    await asyncio.to_thread(lambda: broker.start().wait_ready())
    await ensure_topics(broker.bootstrap_servers, single_machine=True)
    yield broker
    await asyncio.to_thread(broker.stop)


async def start(broker: BrokerProcess) -> None:
    """Start the broker again where it was."""
    await asyncio.to_thread(lambda: broker.start().wait_ready())


async def send(broker: BrokerProcess, journal: Journal, count: int) -> None:
    """Send events with a producer of their own."""
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    await producer.start()
    try:
        await Topic(producer, broker.bootstrap_servers, "").send(journal, journal.records(count))
    finally:
        await producer.stop()


async def test_the_sink_outlives_the_broker(
    own_broker: BrokerProcess, store: Store, database: str
) -> None:
    """It waits for a broker that is absent, says so, and goes on after one that was killed."""
    journal, stop = Journal(), asyncio.Event()
    await send(own_broker, journal, 100)
    own_broker.kill()
    settings = SinkSettings(
        kafka_bootstrap_servers=own_broker.bootstrap_servers,
        clickhouse_dsn=database,
        repair_interval_seconds=0,
        retry_longest_seconds=0.5,
    )
    sink = Sink(settings)
    running = asyncio.create_task(sink.run(stop))
    try:
        await until(lambda: "cannot be asked" in " ".join(sink.condition().reasons), "it says so")
        assert sink.condition().state == "starting"
        await start(own_broker)
        await until(lambda: len(stored_ids(store)) == 100, "stored once the broker is there")
        own_broker.kill()
        await until(lambda: not sink.condition().ready, "it says that Kafka is silent")
        await start(own_broker)
        await send(own_broker, journal, 100)
        await until(lambda: len(stored_ids(store)) == 200, "stored after the outage")
        await until(lambda: sink.condition().ready, "well again")
    finally:
        stop.set()
        await asyncio.wait_for(running, 30)
    assert_counted_once(store, journal)
