"""Recording: durable events a second and how long a caller waits, beside plain durable writes.

`python -m benchmarks.record --json [--seconds S]`. Each event is validated, scrubbed, encoded,
synced to disk and acknowledged; no broker is involved. What a gate has from its request (tenant,
principal, …) is made beforehand; the event's identity and time are made for each. The baselines
make and write the same bytes: append + fdatasync, and `logging` with an fsync a record.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from approvaltrail.producer.producer import Producer
from approvaltrail.producer.settings import ProducerSettings
from approvaltrail.schemas.encoding import encode_event, producer_stamp, stamp
from approvaltrail.schemas.events import ApprovalEvent
from approvaltrail.schemas.identity import new_event_id
from approvaltrail.schemas.sanitise import event_from_untrusted
from approvaltrail.schemas.token_shape import parts_of
from benchmarks.harness import Figure, arguments, interleaved, percentile, show

CALLERS: Final = 64
THREADS: Final = 8
GROUP: Final = 100
CALLS: Final = 10_000
TOKEN_PARTS: Final = parts_of(f"at1.{'p' * 240}.{'m' * 43}")
RATE: Final = 2_000
UNREACHABLE: Final = "127.0.0.1:1"


def call_values(number: int) -> dict[str, Any]:
    """Return the values of an acceptance as a gate has them from call and token."""
    now = datetime.now(UTC)
    return {
        "event_type": "accepted",
        "nonce": f"nonce{number:017d}",
        "nonce_trust": "verified",
        "tenant": f"tenant-{number % 50}",
        "tool": "tidb_delete_cluster",
        "target": f"prod-{number % 777}",
        "action": "delete",
        "plan_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "ledgered": True,
        "issued_at": now,
        "expires_at": now,
        "key_id": "8c5f1a20",
        "principal": f"user-{number % 5000}@corp.example",
        "principal_kind": "user",
        "session_id": f"session-{number // 20:08x}",
        "peer_address": f"10.1.{number % 200}.{number % 250}",
        "client_address": f"10.1.{number % 200}.{number % 250}",
        "address_source": "peer",
        "client_name": "agent/1.4.2",
        "request_id": f"request-{number:012x}",
    }


@functools.cache
def calls() -> list[dict[str, Any]]:
    """Return the values of many calls."""
    return [call_values(number) for number in range(CALLS)]


def made(number: int) -> ApprovalEvent:
    """Build the event of one of the calls as the gate does, scrubbing included."""
    values = {"event_id": new_event_id(), "occurred_at": datetime.now(UTC)}
    return event_from_untrusted(values | calls()[number % CALLS], TOKEN_PARTS).event


def encoded(number: int) -> bytes:
    """Return the bytes that a journal stores for the event."""
    producer = producer_stamp(new_event_id(), "benchmark", "host")
    return stamp(number + 1, time.time_ns() // 1_000, producer) + encode_event(made(number))


@contextlib.contextmanager
def running_producer(servers: str = UNREACHABLE, prefix: str = "") -> Iterator[Producer]:
    """Yield a started producer with a journal of its own in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="record-") as folder:
        settings = ProducerSettings(
            service="benchmark",
            journal_dir=Path(folder) / "journals",
            kafka_bootstrap_servers=servers,
            topic_prefix=prefix,
        )
        producer = Producer(settings)
        producer.start()
        try:
            yield producer
        finally:
            producer.close_sync(2)


def callers(seconds: float) -> float:
    """Events a second from 64 asyncio callers, each waiting for its own."""
    counted = 0

    async def caller(producer: Producer, deadline: float) -> None:
        nonlocal counted
        while time.perf_counter() < deadline:
            await producer.record(made(counted))
            counted += 1

    async def run(producer: Producer) -> None:
        deadline = time.perf_counter() + seconds
        await asyncio.gather(*(caller(producer, deadline) for _ in range(CALLERS)))

    with running_producer() as producer:
        return _rate(lambda: asyncio.run(run(producer)), lambda: counted)


def groups(seconds: float) -> float:
    """Events a second by `record_many` of 100, four groups at a time."""
    counted = 0

    async def caller(producer: Producer, deadline: float) -> None:
        nonlocal counted
        while time.perf_counter() < deadline:
            await producer.record_many([made(counted + place) for place in range(GROUP)])
            counted += GROUP

    async def run(producer: Producer) -> None:
        deadline = time.perf_counter() + seconds
        await asyncio.gather(*(caller(producer, deadline) for _ in range(4)))

    with running_producer() as producer:
        return _rate(lambda: asyncio.run(run(producer)), lambda: counted)


def threads(seconds: float) -> float:
    """Events a second by `record_sync` from eight threads."""
    counts = [0] * THREADS

    def caller(producer: Producer, place: int, deadline: float) -> None:
        while time.perf_counter() < deadline:
            producer.record_sync(made(counts[place]))
            counts[place] += 1

    def run(producer: Producer) -> None:
        deadline = time.perf_counter() + seconds
        started = [
            threading.Thread(target=caller, args=(producer, place, deadline))
            for place in range(THREADS)
        ]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()

    with running_producer() as producer:
        return _rate(lambda: run(producer), lambda: sum(counts))


def append_and_sync(seconds: float) -> float:
    """Baseline: events a second by appending the same bytes and fdatasync, one at a time."""
    with tempfile.NamedTemporaryFile(buffering=0) as file:
        counted, deadline = 0, time.perf_counter() + seconds
        begun = time.perf_counter()
        while time.perf_counter() < deadline:
            file.write(encoded(counted))
            os.fdatasync(file.fileno())
            counted += 1
        return counted / (time.perf_counter() - begun)


class _SyncedHandler(logging.FileHandler):
    """A file handler that syncs every record, as an audit log has to."""

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        if self.stream is not None:
            os.fsync(self.stream.fileno())


def logging_and_sync(seconds: float) -> float:
    """Baseline: events a second through `logging` with an fsync a record, the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        handler = _SyncedHandler(Path(folder) / "audit.log")
        logger = logging.Logger("audit")  # noqa: LOG001 - not a part of the process's loggers
        logger.addHandler(handler)
        counted, deadline = 0, time.perf_counter() + seconds
        begun = time.perf_counter()
        while time.perf_counter() < deadline:
            logger.info("%s", encoded(counted).hex())
            counted += 1
        handler.close()
        return counted / (time.perf_counter() - begun)


def waits_at_fixed_rate(seconds: float) -> list[float]:
    """Milliseconds from when an event was due, at 2,000 a second, to its acknowledgement."""
    waits: list[float] = []

    async def one(producer: Producer, number: int, due: float) -> None:
        await producer.record(made(number))
        waits.append((time.perf_counter() - due) * 1_000)

    async def run(producer: Producer) -> None:
        begun, tasks = time.perf_counter(), []
        for number in range(int(RATE * seconds)):
            due = begun + number / RATE
            if (early := due - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            tasks.append(asyncio.create_task(one(producer, number, due)))
        await asyncio.gather(*tasks)

    with running_producer() as producer:
        asyncio.run(run(producer))
    return waits


def _rate(run: Callable[[], None], counted: Callable[[], int]) -> float:
    begun = time.perf_counter()
    run()
    return counted() / (time.perf_counter() - begun)


def figures(seconds: float) -> Iterator[Figure]:
    """Measure everything that needs no broker."""
    rates = interleaved(
        {
            measure.__name__: functools.partial(measure, seconds)
            for measure in (callers, append_and_sync, groups, logging_and_sync, threads)
        }
    )
    for name, measured in (
        (f"record, {CALLERS} asyncio callers", rates["callers"]),
        (f"record_many of {GROUP}", rates["groups"]),
        (f"record_sync, {THREADS} threads", rates["threads"]),
    ):
        yield Figure(
            name=f"{name} / append + fdatasync",
            value=measured,
            unit="events/s",
            baseline=rates["append_and_sync"],
        )
    yield Figure(
        name=f"record, {CALLERS} asyncio callers / logging + fsync",
        value=rates["callers"],
        unit="events/s",
        baseline=rates["logging_and_sync"],
    )
    waits = waits_at_fixed_rate(max(5, seconds * 3))
    for share in (0.5, 0.99, 0.999):
        yield Figure(
            name=f"record at {RATE}/s, p{share * 100:g}", value=percentile(waits, share), unit="ms"
        )


def main() -> None:
    """Measure and print."""
    chosen = arguments(__doc__, seconds=3)
    show(figures(chosen.seconds), as_json=chosen.json)


if __name__ == "__main__":
    main()
