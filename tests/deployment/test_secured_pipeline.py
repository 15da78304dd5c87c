"""The whole way over the deployment's brokers, each part as its own user and no more."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from aiokafka import AIOKafkaProducer
from tests.deployment.secure_cluster import SecureCluster

from approvaltrail.consumers.redrive import RedriveFilter, redrive
from approvaltrail.consumers.settings import SinkSettings
from approvaltrail.consumers.sink import Sink
from approvaltrail.producer import Producer
from approvaltrail.producer.settings import ProducerSettings
from approvaltrail.schemas import topics
from approvaltrail.schemas.events import ApprovalEvent, EventType, NonceTrust
from approvaltrail.schemas.identity import new_event_id
from approvaltrail.schemas.kafka_settings import KafkaSettings
from approvaltrail.schemas.messages import RepairRequest
from approvaltrail.store.answers import TenantScope
from approvaltrail.store.connection import Store, open_store
from approvaltrail.store.migrations import migrate
from approvaltrail.store.queries import Queries

PATIENCE_SECONDS = 90.0
EVENTS = 50


async def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition, asked outside of the event loop; fail by name past the deadline."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:g} s: {what}"
        await asyncio.sleep(0.05)


@pytest.fixture
def store(database: str) -> Store:
    """Open a fresh store with all its tables."""
    opened = open_store(database)
    migrate(opened)
    return opened


@pytest.fixture
def sink_settings(
    secure: SecureCluster, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SinkSettings:
    """Read a sink's settings from the very environment that docker-compose.yml gives it."""
    parts = urlsplit(database)
    password = tmp_path / "clickhouse.password"
    password.write_text(unquote(parts.password or "") + "\n")
    place = parts._replace(netloc=f"{parts.username}@{parts.hostname}:{parts.port}").geturl()
    replaced = {
        "CLICKHOUSE_DSN": place,
        "CLICKHOUSE_PASSWORD_FILE": str(password),
        "APPROVALTRAIL_HEALTH_HOST": "127.0.0.1",
        "APPROVALTRAIL_HEALTH_PORT": "0",
    }
    for name, value in secure.environment("sink", **replaced).items():
        monkeypatch.setenv(name, value)
    return SinkSettings.from_environment(repair_interval_seconds=0)


@contextlib.asynccontextmanager
async def running(settings: SinkSettings) -> AsyncIterator[Sink]:
    sink, stop = Sink(settings), asyncio.Event()
    task = asyncio.create_task(sink.run(stop))
    try:
        await until(lambda: sink.condition().ready or task.done(), "the sink is ready")
        yield sink
    finally:
        stop.set()
        await task


def producer_settings(secure: SecureCluster, journals: Path) -> ProducerSettings:
    """Return settings as an embedding server has them, with the producer's user."""
    return ProducerSettings(
        service="tidb-mcp",
        instance="pod-1",
        journal_dir=journals,
        journal_allowed_file_systems="tmpfs,overlay",
        kafka_bootstrap_servers=secure.clients,
        kafka_security_protocol="SASL_SSL",
        kafka_sasl_username="producer",
        kafka_sasl_password=secure.password("producer"),
        kafka_ssl_ca_file=secure.authority,
        heartbeat_seconds=1,
        seal_seconds=1,
    )


def an_event(number: int) -> ApprovalEvent:
    return ApprovalEvent(
        event_id=new_event_id(),
        event_type=EventType.ISSUED,
        occurred_at=datetime.now(UTC),
        nonce=f"nonce-{number}",
        nonce_trust=NonceTrust.VERIFIED,
        tenant="acme",
        tool="tidb_delete_cluster",
    )


def count(store: Store, table: str, where: str = "1") -> int:
    return store.query(f"SELECT count() FROM {table} FINAL WHERE {where}").scalar()


async def test_events_arrive_are_sent_again_and_set_aside(
    secure: SecureCluster, sink_settings: SinkSettings, store: Store, tmp_path: Path
) -> None:
    """Events, seals and heartbeats arrive; gaps are sent again on request; garbage is set aside."""
    async with running(sink_settings), Producer(producer_settings(secure, tmp_path)) as producer:
        recorded = await producer.record_many([an_event(number) for number in range(EVENTS)])
        mine = f"producer_id = '{recorded[0].producer_id}'"
        await until(lambda: count(store, "events", mine) == EVENTS, "every event is stored")
        await until(lambda: count(store, "seals", mine) >= 1, "a seal is stored")
        await until(lambda: count(store, "heartbeats", mine) >= 1, "a heartbeat is stored")

        async with as_user(secure, "sink") as sink_client:
            await sink_client.send_and_wait(topics.REPAIRS, repair(recorded[0].producer_id))
        await until(lambda: repaired(producer) >= EVENTS, "the events are sent again")
        async with as_user(secure, "producer") as client:
            await client.send_and_wait(topics.EVENTS, b"not an event")
        await until(lambda: count(store, "dead_letters") >= 1, "garbage is set aside")
        assert count(store, "events", mine) == EVENTS
        found = Queries(store).completeness(TenantScope.everything(), datetime.now(UTC))
        assert [status.gaps for status in found.producers if status.emitted] == [()]


def repair(producer_id: str) -> bytes:
    return RepairRequest(
        producer_id=producer_id,
        first_sequence=1,
        last_sequence=EVENTS,
        requested_at=datetime.now(UTC),
    ).encode()


def repaired(producer: Producer) -> float:
    registry = producer.metrics.registry
    return registry.get_sample_value("approvaltrail_producer_repaired_events_total") or 0


@contextlib.asynccontextmanager
async def as_user(secure: SecureCluster, user: str) -> AsyncIterator[AIOKafkaProducer]:
    client = AIOKafkaProducer(**secure.aiokafka(user), acks="all", enable_idempotence=True)
    try:
        await client.start()
        yield client
    finally:
        await client.stop()


async def test_an_operator_sends_dead_letters_again(
    secure: SecureCluster, sink_settings: SinkSettings, store: Store
) -> None:
    """The operator's user reads what was set aside and writes it to where it came from."""
    async with as_user(secure, "producer") as client:
        await client.send_and_wait(topics.EVENTS, b"still not an event")
    async with running(sink_settings):
        await until(lambda: count(store, "dead_letters") >= 1, "garbage is set aside")
        settings = KafkaSettings(
            kafka_bootstrap_servers=secure.clients,
            kafka_security_protocol="SASL_SSL",
            kafka_sasl_username="operator",
            kafka_sasl_password=secure.password("operator"),
            kafka_ssl_ca_file=secure.authority,
        )
        report = await redrive(settings, store, RedriveFilter(limit=1))
        assert report.sent == 1
        marked = "isNotNull(redriven_at)"
        await until(lambda: count(store, "dead_letters", marked) == 1, "it is marked")
