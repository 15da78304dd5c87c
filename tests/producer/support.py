"""What the producer's tests share: events, settings, and looks into journals and topics."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sqlite3
import time
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from approvaltrail.producer.settings import ProducerSettings
from approvaltrail.schemas import topics
from approvaltrail.schemas.encoding import decode_event
from approvaltrail.schemas.events import ApprovalEvent, EventType, NonceTrust, Reason
from approvaltrail.schemas.identity import new_event_id
from approvaltrail.schemas.messages import Heartbeat, Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from approvaltrail.schemas.events import RecordedEvent

NOWHERE = "127.0.0.1:1"
"""Nobody listens here: connections are refused at once."""


def issued(**values: Any) -> ApprovalEvent:
    """Return an issuance with a nonce of its own."""
    fields: dict[str, Any] = {
        "event_id": new_event_id(),
        "event_type": EventType.ISSUED,
        "occurred_at": datetime.now(UTC),
        "nonce": uuid.uuid4().hex,
        "nonce_trust": NonceTrust.VERIFIED,
        "tool": "tidb_delete_cluster",
        "target": "prod-7",
    }
    return ApprovalEvent(**(fields | values))


def refused(**values: Any) -> ApprovalEvent:
    """Return a refusal of a token that nobody issued."""
    fields: dict[str, Any] = {
        "event_id": new_event_id(),
        "event_type": EventType.REFUSED,
        "reason": Reason.BAD_SIGNATURE,
        "occurred_at": datetime.now(UTC),
        "tool": "tidb_delete_cluster",
    }
    return ApprovalEvent(**(fields | values))


def settings_for(directory: Path, servers: str = NOWHERE, **values: Any) -> ProducerSettings:
    """Return settings of a test's producer, quick where the defaults are patient."""
    fields: dict[str, Any] = {
        "service": "tidb-mcp",
        "instance": "pod-1",
        "journal_dir": directory,
        "kafka_bootstrap_servers": servers,
        "heartbeat_seconds": 0.3,
        "seal_seconds": 0.3,
        "relay_retry_longest_seconds": 0.5,
        "close_seconds": 1.0,
    }
    return ProducerSettings(**(fields | values))


def wait_until(holds: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Wait for a condition, with a deadline."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


async def until(holds: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Wait for a condition without blocking the event loop."""
    await asyncio.to_thread(wait_until, holds, what, seconds)


def journals_in(directory: Path) -> list[Path]:
    """Return the journals' files, oldest first."""
    return sorted(directory.glob("*.journal"))


def journal_in(directory: Path) -> Path:
    """Return the one journal's file."""
    (file,) = journals_in(directory)
    return file


def bodies_in(file: Path) -> list[bytes]:
    """Return the events' bytes as another program reads them."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        rows = connection.execute("SELECT body FROM events ORDER BY sequence").fetchall()
    return [row[0] for row in rows]


def events_in(file: Path) -> list[RecordedEvent]:
    """Return the events of a journal's file."""
    return [decode_event(body) for body in bodies_in(file)]


def state_in(file: Path) -> dict[str, Any]:
    """Return the state row of a journal's file."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        return dict(connection.execute("SELECT * FROM state").fetchone())


async def make_topics(servers: str, prefix: str, *names: str) -> None:
    """Create the topics, all unless some are named, as on a single machine."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        await admin.create_topics(
            [
                NewTopic(
                    topics.prefixed(name, prefix),
                    topics.topic(name).partitions_single_machine,
                    1,
                    topic_configs=topics.topic(name).configuration(),
                )
                for name in names or topics.NAMES
            ]
        )
    finally:
        await admin.close()


async def messages_of(
    servers: str, topic: str, enough: Callable[[list[Any]], object], seconds: float = 60.0
) -> list[Any]:
    """Read a topic from its beginning until there is enough."""
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=servers, group_id=None, auto_offset_reset="earliest"
    )
    await consumer.start()
    found: list[Any] = []
    deadline = time.monotonic() + seconds
    try:
        while not enough(found):
            assert time.monotonic() < deadline, f"{topic}: {len(found)} messages are not enough"
            for messages in (await consumer.getmany(timeout_ms=200)).values():
                found += messages
    finally:
        await consumer.stop()
    return found


async def delivered_events(
    servers: str, prefix: str, count: int, seconds: float = 60.0
) -> list[RecordedEvent]:
    """Read the topic of events until so many different ones are there; each once, in order."""
    topic = topics.prefixed(topics.EVENTS, prefix)
    messages = await messages_of(
        servers, topic, lambda found: len({one.value for one in found}) >= count, seconds
    )
    events = {(one.producer_id, one.sequence): one for one in map(_event, messages)}
    return [events[key] for key in sorted(events)]


async def heartbeats(
    servers: str, prefix: str, enough: Callable[[list[Heartbeat]], object]
) -> list[Heartbeat]:
    """Read heartbeats until there is enough."""
    messages = await messages_of(
        servers,
        topics.prefixed(topics.HEARTBEATS, prefix),
        lambda found: enough([Heartbeat.decode(one.value) for one in found]),
    )
    return [Heartbeat.decode(one.value) for one in messages]


async def seals(servers: str, prefix: str, enough: Callable[[list[Seal]], object]) -> list[bytes]:
    """Read encoded seals until there is enough."""
    messages = await messages_of(
        servers,
        topics.prefixed(topics.SEALS, prefix),
        lambda found: enough([Seal.decode(one.value) for one in found]),
    )
    return [one.value for one in messages]


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """Give an address that takes connections and never answers, as if packets were dropped."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _event(message: Any) -> RecordedEvent:
    return decode_event(message.value)
