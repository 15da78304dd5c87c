"""The whole way: how long after `record()` began an event is in a query's answer.

`python -m benchmarks.end_to_end --json [--seconds S] [--backlog N]`. One producer records 500
events a second; relay, broker, sink and engine run with their defaults. A query asks again and
again which numbers are there, so that its own time is part of the figure. Then a journal that
filled while the broker was away is drained: while nobody records, and while 2,000 events a second
are recorded, whose waits are measured.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from approvaltrail.producer.producer import Producer
from approvaltrail.producer.settings import ProducerSettings
from approvaltrail.store.connection import Store, open_store
from benchmarks.harness import Figure, arguments, percentile, show
from benchmarks.record import UNREACHABLE, made
from benchmarks.stack import Stack, running_stack, wait_until

RATE: Final = 500
DRAINING_RATE: Final = 2_000
WARM_UP_EVENTS: Final = 500
GROUP: Final = 500
_SEEN: Final = """
SELECT sequence FROM events
WHERE occurred_at >= {since:DateTime64(6, 'UTC')} AND sequence > {after:UInt64}
"""


class Watcher:
    """Notes when each number is in a query's answer for the first time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._since = datetime.now(UTC)
        self._after = 0
        self.seen: dict[int, float] = {}
        self.stopped = False

    def run(self) -> None:
        """Ask, with hardly a pause, until `stopped`."""
        while not self.stopped:
            parameters = {"since": self._since, "after": self._after}
            rows = self._store.query(_SEEN, parameters).rows
            now = time.perf_counter()
            for (sequence,) in rows:
                self.seen.setdefault(int(sequence), now)
            while self._after + 1 in self.seen:
                self._after += 1
            time.sleep(0.005)


def waits_at_fixed_rate(stack: Stack, seconds: int) -> list[float]:
    """Return the milliseconds from each call of `record` to the event's visibility."""
    prefix, dsn = stack.fresh_topics(), stack.fresh_database()
    sink = stack.sink(prefix, dsn)
    with open_store(dsn) as store, tempfile.TemporaryDirectory(prefix="end-to-end-") as folder:
        watcher = Watcher(store)
        thread = threading.Thread(target=watcher.run)
        thread.start()
        try:
            producer = Producer(_settings(Path(folder), stack.bootstrap_servers, prefix))
            begun = asyncio.run(_record(producer, RATE * seconds, watcher))
            wait_until(lambda: begun.keys() <= watcher.seen.keys(), "everything is seen")
        finally:
            watcher.stopped = True
            thread.join()
            sink.stop()
    stack.drop_database(dsn)
    return [(watcher.seen[number] - at) * 1_000 for number, at in begun.items()]


async def _record(producer: Producer, events: int, watcher: Watcher) -> dict[int, float]:
    """Warm up until the first events are seen, then record at the rate; say when each began."""
    begun: dict[int, float] = {}

    async def one(number: int) -> None:
        at = time.perf_counter()
        recorded = await producer.record(made(number))
        begun[recorded.sequence] = at

    async with producer:
        await producer.record_many([made(number) for number in range(WARM_UP_EVENTS)])
        await asyncio.to_thread(
            wait_until, lambda: len(watcher.seen) == WARM_UP_EVENTS, "the first events are seen"
        )
        start = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number in range(events):
                early = start + number / RATE - time.perf_counter()
                if early > 0:
                    await asyncio.sleep(early)
                tasks.create_task(one(number))
    return begun


def drain(stack: Stack, events: int) -> float:
    """Return the events a second at which a journal's backlog reaches the broker."""
    prefix = stack.fresh_topics()
    with tempfile.TemporaryDirectory(prefix="backlog-") as folder:
        asyncio.run(_fill(Producer(_settings(Path(folder), UNREACHABLE, prefix)), events))
        producer = Producer(_settings(Path(folder), stack.bootstrap_servers, prefix))
        producer.start()
        try:
            wait_until(lambda: producer.health().pending < events, "the first delivery", 0.001)
            left, begun = producer.health().pending, time.perf_counter()
            wait_until(lambda: producer.health().pending == 0, "the backlog's end", 0.005)
            seconds = time.perf_counter() - begun
        finally:
            producer.close_sync()
    return left / seconds


def waits_while_draining(stack: Stack, events: int) -> tuple[list[float], float]:
    """Return the milliseconds that callers wait while a backlog is drained, and how fast it is."""
    prefix = stack.fresh_topics()
    with tempfile.TemporaryDirectory(prefix="backlog-") as folder:
        asyncio.run(_fill(Producer(_settings(Path(folder), UNREACHABLE, prefix)), events))
        producer = Producer(_settings(Path(folder), stack.bootstrap_servers, prefix))
        producer.start()
        try:
            wait_until(lambda: producer.health().pending < events, "the first delivery", 0.001)
            begun = time.perf_counter()
            waits = asyncio.run(_record_until_caught_up(producer))
            left = producer.health().last_sequence - producer.health().pending
            seconds = time.perf_counter() - begun
        finally:
            producer.close_sync()
    return waits, left / seconds


async def _record_until_caught_up(producer: Producer) -> list[float]:
    """Record at a fixed rate until hardly anything is pending; return what each waited, in ms."""
    waits: list[float] = []
    begun = time.perf_counter()

    async def one(number: int, due: float) -> None:
        await producer.record(made(number))
        waits.append((time.perf_counter() - due) * 1_000)

    async with asyncio.TaskGroup() as tasks:
        for number in itertools.count():
            due = begun + number / DRAINING_RATE
            if (early := due - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            if producer.health().pending < DRAINING_RATE // 4:
                break
            tasks.create_task(one(number, due))
    return waits


async def _fill(producer: Producer, events: int) -> None:
    await asyncio.to_thread(producer.start)
    for first in range(0, events, GROUP):
        await producer.record_many([made(first + place) for place in range(GROUP)])
    await producer.close(1)


def _settings(folder: Path, servers: str, prefix: str) -> ProducerSettings:
    return ProducerSettings(
        service="benchmark",
        journal_dir=folder / "journals",
        kafka_bootstrap_servers=servers,
        topic_prefix=prefix,
    )


def figures(seconds: int, backlog: int) -> Iterator[Figure]:
    """Measure everything."""
    with running_stack() as stack:
        waits = waits_at_fixed_rate(stack, seconds)
        for share in (0.5, 0.99, 0.999):
            yield Figure(
                name=f"record() to visible at {RATE}/s, p{share * 100:g}",
                value=percentile(waits, share),
                unit="ms",
            )
        yield Figure(
            name=f"relay, backlog of {backlog:,}", value=drain(stack, backlog), unit="events/s"
        )
        waits, rate = waits_while_draining(stack, backlog)
        for share in (0.5, 0.99):
            yield Figure(
                name=f"record at {DRAINING_RATE:,}/s while draining, p{share * 100:g}",
                value=percentile(waits, share),
                unit="ms",
            )
        yield Figure(name="relay, the same backlog meanwhile", value=rate, unit="events/s")


def main() -> None:
    """Measure and print."""
    chosen = arguments(__doc__, seconds=20, backlog=200_000)
    show(list(figures(chosen.seconds, chosen.backlog)), as_json=chosen.json)


if __name__ == "__main__":
    main()
