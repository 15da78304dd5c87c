"""A process that embeds a producer and records until SIGTERM: `python -m tests.chaos.recorder`.

Arguments: journal directory, bootstrap servers, topic prefix, notebook. It prints `ready` once it
may be told to stop.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path

import structlog
from tests.chaos.notebook import Notebook

from approvaltrail.producer import Producer
from approvaltrail.producer.settings import ProducerSettings
from approvaltrail.schemas.encoding import microseconds
from approvaltrail.schemas.events import ApprovalEvent, EventType, NonceTrust
from approvaltrail.schemas.identity import new_event_id

CALLERS = 4
PAUSE_SECONDS = 0.01


def settings_of(directory: Path, servers: str, prefix: str) -> ProducerSettings:
    """Return settings that are quick where the defaults are patient."""
    return ProducerSettings(
        service="chaos",
        instance="pod-1",
        journal_dir=directory,
        kafka_bootstrap_servers=servers,
        topic_prefix=prefix,
        heartbeat_seconds=0.25,
        seal_seconds=0.5,
        seal_events=200,
        relay_retry_longest_seconds=0.5,
        close_seconds=5.0,
    )


def new_event() -> ApprovalEvent:
    """Make an issuance."""
    return ApprovalEvent(
        event_id=new_event_id(),
        event_type=EventType.ISSUED,
        occurred_at=datetime.now(UTC),
        nonce=uuid.uuid4().hex,
        nonce_trust=NonceTrust.VERIFIED,
        tenant="acme",
        tool="tidb_delete_cluster",
        target="prod-7",
        attributes=(("region", "eu"),),
    )


async def call(producer: Producer, notebook: Notebook, stop: asyncio.Event) -> None:
    """Record one event after the other."""
    while not stop.is_set():
        event = new_event()
        notebook.attempt(event.event_id)
        recorded = await producer.record(event)
        notebook.acknowledged(
            event.event_id,
            recorded.producer_id,
            recorded.sequence,
            microseconds(recorded.recorded_at),
        )
        await asyncio.sleep(PAUSE_SECONDS)


async def run(settings: ProducerSettings, notebook: Notebook) -> None:
    """Record from several callers until told to stop, then close in order."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Producer(settings) as producer:
        print("ready", flush=True)  # noqa: T201 - the test waits for it
        await asyncio.gather(*(call(producer, notebook, stop) for _ in range(CALLERS)))


if __name__ == "__main__":
    # Standard output is for `ready` alone: nobody reads more of it.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    directory, servers, prefix, path = sys.argv[1:]
    asyncio.run(run(settings_of(Path(directory), servers, prefix), Notebook(Path(path))))
