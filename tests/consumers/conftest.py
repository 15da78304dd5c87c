"""A store with its tables, topics of one's own, and settings for sinks that use them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from aiokafka import AIOKafkaProducer
from tests.consumers.parts import Topic
from tests.support.engine_faults import engine_faults

from approvaltrail.consumers.settings import SinkSettings
from approvaltrail.consumers.topics_admin import ensure_topics
from approvaltrail.store.connection import Store, open_store
from approvaltrail.store.migrations import migrate

if TYPE_CHECKING:
    from approvaltrail.local.broker import BrokerProcess

__all__ = ["engine_faults"]


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    """Open a fresh store with all its tables."""
    with open_store(database) as opened:
        migrate(opened)
        yield opened


@pytest_asyncio.fixture
async def topic(kafka: BrokerProcess, topic_prefix: str) -> AsyncIterator[Topic]:
    """Fresh topics and a producer for them."""
    await ensure_topics(kafka.bootstrap_servers, topic_prefix, single_machine=True)
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, linger_ms=2)
    await producer.start()
    try:
        yield Topic(producer, kafka.bootstrap_servers, topic_prefix)
    finally:
        await producer.stop()


@pytest.fixture
def settings(topic: Topic, database: str, store: Store) -> Callable[..., SinkSettings]:
    """Make settings of a sink between the fresh topics and the fresh store."""

    def make(**changes: Any) -> SinkSettings:
        values: dict[str, Any] = {
            "kafka_bootstrap_servers": topic.bootstrap_servers,
            "clickhouse_dsn": database,
            "topic_prefix": topic.prefix,
            "sink_group_id": f"{topic.prefix}sink",
            "session_timeout_ms": 6_000,
            "heartbeat_interval_ms": 300,
            "retry_longest_seconds": 0.5,
            "repair_interval_seconds": 0,
            **changes,
        }
        return SinkSettings(**values)

    return make
