"""Coming back: from the SIGKILL of a part to the first event stored that was recorded after it.

`python -m benchmarks.restart --json [--rounds R]`. Everything runs as `approvaltrail up` runs it,
its supervisor included, while a producer records fifty events a second.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from approvaltrail.local.broker import BrokerProcess
from approvaltrail.local.keeper import STEADY_AFTER_SECONDS, PartState, PartStatus
from approvaltrail.local.settings import LocalSettings
from approvaltrail.local.supervisor import Supervisor
from approvaltrail.local.up import Running, everything_up
from approvaltrail.producer.producer import Producer
from approvaltrail.producer.settings import ProducerSettings
from approvaltrail.store.connection import Store, open_store
from approvaltrail.store.errors import StoreError
from benchmarks.harness import Figure, arguments, show
from benchmarks.record import made
from benchmarks.stack import wait_until

PARTS: Final = ("sink", "engine", "broker")
RATE: Final = 50
_FIRST: Final = "SELECT count() FROM events WHERE recorded_at >= {since:DateTime64(6, 'UTC')}"


class Quiet:
    """A watcher who is not interested."""

    def part_changed(self, status: PartStatus) -> None:
        """Take a part's new status."""

    def jar_fetched(self, done: int, total: int, name: str) -> None:
        """Take the progress of fetching Kafka's jars."""


def seconds_to_return(part: str, supervisor: Supervisor, store: Store) -> float:
    """Kill a part and return after how many seconds an event recorded after that is stored."""
    status = next(one for one in supervisor.statuses if one.name == part)
    if status.pid is None:
        raise RuntimeError(f"the {part} does not run")
    since, begun = datetime.now(UTC), time.perf_counter()
    os.kill(status.pid, signal.SIGKILL)
    wait_until(lambda: _stored(store, since), f"an event stored after the {part} was killed")
    seconds = time.perf_counter() - begun
    wait_until(lambda: _steady(supervisor), "every part is ready again")
    time.sleep(STEADY_AFTER_SECONDS)  # after less than a healthy run, the supervisor pauses
    return seconds


def _stored(store: Store, since: datetime) -> bool:
    try:
        return bool(store.query(_FIRST, {"since": since}).scalar())
    except StoreError:
        return False


def _steady(supervisor: Supervisor) -> bool:
    return all(status.state is PartState.READY for status in supervisor.statuses)


async def _record(producer: Producer, stopped: threading.Event) -> None:
    async with producer:
        number = 0
        while not stopped.is_set():
            await producer.record(made(number))
            number += 1
            await asyncio.sleep(1 / RATE)


def measured(running: Running, rounds: int) -> dict[str, list[float]]:
    """Kill each part in turn, round after round."""
    stopped = threading.Event()
    producer = Producer(
        ProducerSettings(
            service="benchmark",
            journal_dir=running.folder.root / "benchmark-journals",
            kafka_bootstrap_servers=running.servers.kafka_bootstrap_servers,
        )
    )
    thread = threading.Thread(target=lambda: asyncio.run(_record(producer, stopped)))
    seen: dict[str, list[float]] = {part: [] for part in PARTS}
    thread.start()
    try:
        with open_store(running.servers.writer_dsn, timeout_seconds=5) as store:
            wait_until(lambda: _stored(store, datetime.fromtimestamp(0, UTC)), "a first event")
            for _ in range(rounds):
                for part in PARTS:
                    seen[part].append(seconds_to_return(part, running.supervisor, store))
    finally:
        stopped.set()
        thread.join()
    return seen


def figures(rounds: int) -> Iterator[Figure]:
    """Measure everything."""
    with tempfile.TemporaryDirectory(prefix="restart-", ignore_cleanup_errors=True) as folder:
        settings = LocalSettings(data=Path(folder))
        with everything_up(settings, Quiet(), dashboard=False) as running:
            broker = BrokerProcess(running.folder.broker)
            wait_until(lambda: broker.has_startup_cache, "what a broker has after two minutes")
            seen = measured(running, rounds)
    for part, seconds in seen.items():
        yield Figure(
            name=f"{part} killed, median of {rounds}", value=statistics.median(seconds), unit="s"
        )
        yield Figure(name=f"{part} killed, longest", value=max(seconds), unit="s")


def main() -> None:
    """Measure and print."""
    chosen = arguments(__doc__, rounds=5)
    show(list(figures(chosen.rounds)), as_json=chosen.json)


if __name__ == "__main__":
    main()
