"""Brokers that are absent, silent, killed and back: nothing is lost, and nobody waits."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from aiokafka.errors import OutOfOrderSequenceNumber
from tests.producer.support import (
    NOWHERE,
    bodies_in,
    delivered_events,
    free_port,
    issued,
    journal_in,
    make_topics,
    messages_of,
    settings_for,
    silent_server,
    until,
    wait_until,
)

from approvaltrail.local.broker import BrokerProcess
from approvaltrail.producer import Producer
from approvaltrail.producer.errors import RelayError
from approvaltrail.producer.link import Link
from approvaltrail.producer.relay import ended
from approvaltrail.schemas import topics
from approvaltrail.schemas.messages import owner_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED = 20_261_131


REQUEST_SECONDS = 35
"""Who waits for the broker rather than for his own time waits for a request, and that is longer."""


@pytest.fixture(scope="module")
def own_kafka(
    tmp_path_factory: pytest.TempPathFactory, kafka: BrokerProcess
) -> Iterator[BrokerProcess]:
    """Run a broker for these tests alone, to be killed; `kafka` has shown that one can run."""
    broker = BrokerProcess(tmp_path_factory.mktemp("own-kafka"))
    broker.start().wait_ready()
    yield broker
    broker.stop()


async def test_use_without_a_broker(tmp_path: Path) -> None:
    """P-10: with no broker, start returns, records succeed, and health says what fails."""
    producer = Producer(settings_for(tmp_path, NOWHERE))
    producer.start()
    for number in range(1, 11):
        assert (await producer.record(issued())).sequence == number

    def said() -> bool:
        return "relay_retrying" in [reason.code for reason in producer.health().reasons]

    await until(said, "health says that the relay retries")
    health = producer.health()
    assert (health.live, health.ready, health.degraded) == (True, True, True)
    assert health.pending == 10
    changes = producer.metrics.registry.get_sample_value(
        "approvaltrail_producer_client_changes_total", {"error": "KafkaConnectionError"}
    )
    assert changes
    assert changes >= 1
    await producer.close(1)


async def test_outage_from_the_start_and_sigkill(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str
) -> None:
    """P-01: events recorded while no broker answered survive a SIGKILL and are delivered once."""
    record = """
import os, sys
from pathlib import Path
from approvaltrail.producer import Producer
from tests.producer.support import issued, settings_for
producer = Producer(settings_for(Path(sys.argv[1])))
producer.start()
for _ in range(300):
    producer.record_sync(issued())
os.kill(os.getpid(), 9)
"""
    await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", record, str(tmp_path)], check=False, timeout=60
    )
    assert len(bodies_in(journal_in(tmp_path))) == 300
    await make_topics(kafka.bootstrap_servers, topic_prefix)
    producer = Producer(settings_for(tmp_path, kafka.bootstrap_servers, topic_prefix=topic_prefix))
    producer.start()
    events = await delivered_events(kafka.bootstrap_servers, topic_prefix, 300)
    assert [event.sequence for event in events] == list(range(1, 301))
    await producer.close(5)


DRAIN = """
import sys, time
from pathlib import Path
from approvaltrail.producer import Producer
from tests.producer.support import settings_for
producer = Producer(settings_for(
    Path(sys.argv[1]), sys.argv[2], topic_prefix=sys.argv[3], relay_chunk_events=200
))
producer.start()
while True:
    print(producer._journal.progress.relayed_sequence, flush=True)
    time.sleep(0.002)
"""


async def test_sigkill_while_draining(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str
) -> None:
    """P-02: a SIGKILL at random points of a drain costs duplicates at most, never an event."""
    count = 6_000
    filling = Producer(settings_for(tmp_path))
    filling.start()
    for _ in range(count // 1_000):
        await filling.record_many([issued() for _ in range(1_000)])
    await filling.close(0.5)
    await make_topics(kafka.bootstrap_servers, topic_prefix)
    chance = random.Random(SEED)
    for _ in range(2):
        await asyncio.to_thread(_drain_and_kill, tmp_path, kafka, topic_prefix, chance)
    producer = Producer(settings_for(tmp_path, kafka.bootstrap_servers, topic_prefix=topic_prefix))
    producer.start()
    events = await delivered_events(kafka.bootstrap_servers, topic_prefix, count)
    assert [event.sequence for event in events] == list(range(1, count + 1)), f"seed {SEED}"
    assert len({event.event_id for event in events}) == count
    await until(lambda: producer.health().pending == 0, "acknowledged")
    await producer.close(5)


def _drain_and_kill(
    directory: Path, kafka: BrokerProcess, prefix: str, chance: random.Random
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", DRAIN, str(directory), kafka.bootstrap_servers, prefix],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    target = chance.randrange(200, 2_500)
    begun: int | None = None
    for line in child.stdout:
        if not line.strip().isdigit():
            continue
        begun = int(line) if begun is None else begun
        if int(line) >= begun + target:
            break
    os.kill(child.pid, signal.SIGKILL)
    child.stdout.close()
    child.wait()


async def test_a_client_that_lost_its_sequence_is_replaced(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str
) -> None:
    """P-07: a client that fails every send after a lost batch is discarded; a new one replays."""
    opened: list[Link] = []

    class Broken(Link):
        """Sends one chunk, loses the answer of the next, and is out of order for ever."""

        chunks = 0

        async def send_events(self, producer_id: str, rows: list) -> list:
            self.chunks += 1
            if self.chunks == 2:
                await super().send_events(producer_id, rows)
            if self.chunks >= 2:
                raise RelayError("a batch") from OutOfOrderSequenceNumber()
            return await super().send_events(producer_id, rows)

    async def connect(settings: object) -> Link:
        link = await (Broken if len(opened) < 2 else Link).open(settings)
        opened.append(link)
        return link

    await make_topics(kafka.bootstrap_servers, topic_prefix)
    producer = Producer(
        settings_for(
            tmp_path, kafka.bootstrap_servers, topic_prefix=topic_prefix, relay_chunk_events=50
        ),
        connect=connect,
    )
    producer.start()
    await producer.record_many([issued() for _ in range(500)])
    events = await delivered_events(kafka.bootstrap_servers, topic_prefix, 500)
    assert [event.sequence for event in events] == list(range(1, 501))
    assert len(opened) >= 3
    changes = producer.metrics.registry.get_sample_value(
        "approvaltrail_producer_client_changes_total", {"error": "OutOfOrderSequenceNumber"}
    )
    assert changes == 2
    await producer.close(5)


async def test_broker_killed_midway_and_back(
    tmp_path: Path, own_kafka: BrokerProcess, topic_prefix: str
) -> None:
    """A broker killed under load and back again receives every event; records never failed."""
    servers = own_kafka.bootstrap_servers
    await make_topics(servers, topic_prefix)
    producer = Producer(settings_for(tmp_path, servers, topic_prefix=topic_prefix))
    producer.start()
    recording = True
    count = 0

    async def caller() -> None:
        nonlocal count
        while recording:
            await producer.record(issued())
            count += 1
            await asyncio.sleep(0.002)

    callers = [asyncio.create_task(caller()) for _ in range(4)]
    await until(lambda: producer._journal.progress.relayed_sequence > 50, "some are delivered")
    await asyncio.to_thread(own_kafka.kill)
    killed_at = count
    await until(lambda: count > killed_at + 200, "records go on without the broker")
    await asyncio.to_thread(lambda: own_kafka.start().wait_ready())
    await until(lambda: producer.health().pending < 100, "the relay has caught up", 60)
    recording = False
    await asyncio.gather(*callers)
    report = await producer.close(10)
    assert report.pending == 0
    events = await delivered_events(servers, topic_prefix, count)
    assert [event.sequence for event in events] == list(range(1, count + 1))


async def test_close_when_the_broker_has_died(
    tmp_path: Path, own_kafka: BrokerProcess, topic_prefix: str
) -> None:
    """P-08: with the broker dead, close returns in time with what is pending, which is kept."""
    servers = own_kafka.bootstrap_servers
    await make_topics(servers, topic_prefix)
    settings = settings_for(tmp_path, servers, topic_prefix=topic_prefix)
    producer = Producer(settings)
    producer.start()
    await producer.record(issued())
    await until(lambda: producer.health().pending == 0, "delivered")
    await asyncio.to_thread(own_kafka.kill)
    for _ in range(10):
        await asyncio.wait_for(producer.record(issued()), 1)
    async with asyncio.timeout(REQUEST_SECONDS):
        report = await producer.close(3)
    assert (report.pending, report.in_time) == (10, True)
    await asyncio.to_thread(lambda: own_kafka.start().wait_ready())
    again = Producer(settings)
    again.start()
    await until(lambda: again.health().pending == 0, "the next start sends them", 40)
    events = await delivered_events(servers, topic_prefix, 11)
    assert [event.sequence for event in events] == list(range(1, 12))
    await again.close(5)


HOST = """
import asyncio, signal, sys
from pathlib import Path
from approvaltrail.producer import Producer
from tests.producer.support import issued, settings_for

async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    producer = Producer(settings_for(Path(sys.argv[1]), sys.argv[2], close_seconds=2.0))
    async with producer:
        for _ in range(10):
            await producer.record(issued())
        print("ready", flush=True)
        await stop.wait()

asyncio.run(main())
"""


def test_a_host_ends_in_time_with_a_silent_broker(tmp_path: Path) -> None:
    """P-09: with an address that swallows packets, SIGTERM ends the host within its grace time."""
    with silent_server() as servers:
        host = subprocess.Popen(
            [sys.executable, "-c", HOST, str(tmp_path), servers],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert host.stdout is not None
        for line in host.stdout:
            if line.strip() == "ready":
                break
        host.send_signal(signal.SIGTERM)
        said, _ = host.communicate(timeout=REQUEST_SECONDS)
        assert host.returncode == 0
    last = said.strip().splitlines()[-1]
    assert "producer_closed" in last
    assert "in_time=True" in last
    assert "pending=10" in last


@pytest.mark.parametrize("kind", ["refused", "silent"])
async def test_latency_does_not_depend_on_the_broker(tmp_path: Path, kind: str) -> None:
    """S-04: refused or swallowed connections change nothing for record; health turns degraded."""
    with silent_server() as silent:
        servers = silent if kind == "silent" else f"127.0.0.1:{free_port()}"
        producer = Producer(
            settings_for(tmp_path, servers, relay_connect_seconds=1.0, heartbeat_seconds=0.2)
        )
        producer.start()
        seconds = []
        for _ in range(200):
            began = time.monotonic()
            await producer.record(issued())
            seconds.append(time.monotonic() - began)
        assert statistics.median(seconds) < 1.0, "as long as each attempt to connect takes"

        def lagging() -> bool:
            health = producer.health()
            return health.degraded and health.pending == 200 and health.lag_seconds > 0

        await until(lagging, "degraded, with a lag")
        await producer.close(1)


async def test_a_throttled_broker_costs_disk_not_memory(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str
) -> None:
    """S-08: what a slow broker does not take is on disk; the process holds one chunk of it."""
    largest = 0

    class Slow(Link):
        """Takes ten events and then a while."""

        async def send_events(self, producer_id: str, rows: list) -> list:
            nonlocal largest
            largest = max(largest, len(rows))
            await asyncio.sleep(0.2)
            return await super().send_events(producer_id, rows)

    await make_topics(kafka.bootstrap_servers, topic_prefix)
    producer = Producer(
        settings_for(
            tmp_path, kafka.bootstrap_servers, topic_prefix=topic_prefix, relay_chunk_events=10
        ),
        connect=Slow.open,
    )
    producer.start()
    for _ in range(10):
        await producer.record_many([issued() for _ in range(500)])
    assert len(bodies_in(journal_in(tmp_path))) == 5_000
    await until(lambda: producer.health().lag_seconds > 0.5, "the lag is shown")
    assert producer._journal._writer._waiting_bytes == 0, "nothing waits in memory"
    assert largest <= 10
    report = await producer.close(1)
    assert report.pending > 4_000


async def test_idle_producers_write_nothing(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str
) -> None:
    """S-14: a lost position is made up for by sending again, once; then writes fall to zero."""
    servers = kafka.bootstrap_servers
    await make_topics(servers, topic_prefix)
    settings = settings_for(tmp_path, servers, topic_prefix=topic_prefix)
    producer = Producer(settings)
    producer.start()
    for _ in range(100):
        await producer.record(issued())
    await producer.close(5)
    file = journal_in(tmp_path)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE state SET relayed_sequence = 0")
        connection.commit()
    again = Producer(settings)
    again.start()
    await until(lambda: again.health().pending == 0, "sent again")
    wal = file.with_name(f"{file.name}-wal")
    await until(lambda: again._journal.progress.unwritten() is None, "the position is written")
    size, changed = wal.stat().st_size, wal.stat().st_mtime_ns
    await asyncio.sleep(1.5)  # the property is that nothing happens in a stretch of time
    assert (wal.stat().st_size, wal.stat().st_mtime_ns) == (size, changed)
    await again.close(5)
    messages = await messages_of(
        servers, topics.prefixed(topics.EVENTS, topic_prefix), lambda found: len(found) >= 200
    )
    numbers = collections.Counter(owner_of(message.headers)[1] for message in messages)
    assert set(numbers.values()) == {2}
    wait_until(lambda: len(bodies_in(file)) == 100, "each once in the journal")


async def test_a_task_that_takes_a_cancellation_for_its_own_is_ended_all_the_same() -> None:
    """P-07: nothing that a client swallows keeps the relay from its next client."""
    swallowed = 0

    async def stubborn() -> None:
        nonlocal swallowed
        while swallowed < 2:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                swallowed += 1
        await asyncio.sleep(60)

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    await ended(task)
    assert task.done()
    assert swallowed == 2
