"""Asking: how long each named query takes over millions of events, idle and under a running sink.

`python -m benchmarks.queries --json [--events N] [--times T]`. Bounds of ranges differ from
question to question, so that no answer comes from a cache of the one before. One nonce was
presented a hundred thousand times.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from approvaltrail.schemas.topics import EVENTS
from approvaltrail.store.answers import TenantScope, TimeRange
from approvaltrail.store.connection import Store, open_store
from approvaltrail.store.queries import Queries
from benchmarks.generate import generate
from benchmarks.harness import Figure, arguments, percentile, show
from benchmarks.stack import Stack, running_stack, wait_until
from benchmarks.traffic import PacedSender

SINK_EVENTS_PER_SECOND: Final = 1_000
HOT_NONCE: Final = "a-nonce-presented-often"
HOT_PRESENTATIONS: Final = 100_000
HOT_AGE: Final = timedelta(days=75)
"""Out of the other questions' ranges."""
_EVERYTHING: Final = TenantScope.everything()
_REUSED: Final = """
SELECT DISTINCT nonce FROM events
WHERE event_type = 'replayed' AND occurred_at >= now() - 86400 * 60
ORDER BY sipHash64(nonce) LIMIT {limit:UInt32}
"""
_HOT: Final = """
INSERT INTO events (sequence, recorded_at, producer_id, service, instance, event_id, event_type,
  occurred_at, reason, nonce, nonce_trust, tenant, tool, target, principal, principal_kind,
  address_source, kafka_partition, kafka_offset, schema_fingerprint)
SELECT number + 1, occurred_at, toUUID('0190a000-0000-7000-8000-0000000000ff'), 'service-0',
  'pod-9', generateUUIDv7(number), if(number = 0, 'accepted', 'replayed'),
  {start:DateTime64(6, 'UTC')} + toIntervalMillisecond(number * 800) AS occurred_at,
  if(number = 0, NULL, 'already_used'), {nonce:String}, 'verified', 'tenant-001',
  'tidb_delete_cluster', 'cluster-1', 'user1@corp', 'user', 'unknown', 0, number,
  'da98f317481b9f36'
FROM numbers({presentations:UInt64} + 1)
"""


class Questions:
    """Asks each named query with bounds and nonces of its own, and says how long it took."""

    def __init__(self, store: Store, seed: int = 1) -> None:
        self._queries = Queries(store)
        self._chance = random.Random(seed)
        self._nonces = [row[0] for row in store.query(_REUSED, {"limit": 1_000}).rows]

    def kinds(self) -> dict[str, Callable[[], object]]:
        """Return every question by its name."""
        ask = self._queries
        return {
            "trail": lambda: ask.trail(self._chance.choice(self._nonces), _EVERYTHING),
            "reuses, 24 h": lambda: ask.reuses(self._range(1), _EVERYTHING),
            "overview, 24 h": lambda: ask.overview(self._range(1), _EVERYTHING),
            "overview, 7 d": lambda: ask.overview(self._range(7), _EVERYTHING),
            "overview, 30 d": lambda: ask.overview(self._range(30), _EVERYTHING),
            "events page and total, 24 h": lambda: ask.events(self._range(1), _EVERYTHING),
            "completeness": lambda: ask.completeness(_EVERYTHING, datetime.now(UTC)),
            "trail, 100,000 presentations": lambda: ask.trail(HOT_NONCE, _EVERYTHING),
            "reuses, 24 h, 100,000 presentations": lambda: ask.reuses(
                self._range(1, HOT_AGE - timedelta(days=1)), _EVERYTHING
            ),
        }

    def _range(self, days: float, age: timedelta = timedelta()) -> TimeRange:
        end = datetime.now(UTC) - age - timedelta(seconds=self._chance.uniform(0, 3_600))
        return TimeRange(end - timedelta(days=days), end)


def asked(store: Store, times: int, state: str) -> Iterator[Figure]:
    """Yield p50 and p99 of each question, asked in turn."""
    questions = Questions(store).kinds()
    waits: dict[str, list[float]] = {name: [] for name in questions}
    for turn in range(times + 1):
        for name, ask in questions.items():
            begun = time.perf_counter()
            ask()
            if turn:  # the first one compiles and opens files
                waits[name].append((time.perf_counter() - begun) * 1_000)
    for name, seen in waits.items():
        for share in (0.5, 0.99):
            yield Figure(
                name=f"{name}, {state}, p{share * 100:g}", value=percentile(seen, share), unit="ms"
            )


@contextlib.contextmanager
def storing(stack: Stack, dsn: str, store: Store) -> Iterator[None]:
    """Run a sink into the store, and traffic for it."""
    prefix = stack.fresh_topics()
    sink = stack.sink(prefix, dsn)
    sender = PacedSender(stack.bootstrap_servers, f"{prefix}{EVENTS}", SINK_EVENTS_PER_SECOND)
    thread = threading.Thread(target=sender.run)
    before = _rows(store)
    thread.start()
    try:
        wait_until(lambda: _rows(store) > before, "the sink stores")
        yield
    finally:
        sender.stopped = True
        thread.join()
        sink.stop()


def _present_often(store: Store) -> None:
    parameters = {
        "nonce": HOT_NONCE,
        "presentations": HOT_PRESENTATIONS,
        "start": datetime.now(UTC) - HOT_AGE,
    }
    store.command(_HOT, parameters=parameters)


def _rows(store: Store) -> int:
    return int(store.query("SELECT count() FROM events").scalar())


def figures(events: int, times: int) -> Iterator[Figure]:
    """Fill a store and ask."""
    with running_stack() as stack:
        dsn = stack.fresh_database()
        with open_store(dsn, timeout_seconds=600) as store:
            begun = time.perf_counter()
            rows = generate(store, events)
            _present_often(store)
            yield Figure(name="stored events", value=rows, unit="events")
            yield Figure(name="filled in", value=time.perf_counter() - begun, unit="s")
            stack.settle()
            yield from asked(store, times, "idle")
            with storing(stack, dsn, store):
                yield from asked(store, times, "under a sink")


def main() -> None:
    """Measure and print."""
    chosen = arguments(__doc__, events=10_000_000, times=100)
    show(list(figures(chosen.events, chosen.times)), as_json=chosen.json)


if __name__ == "__main__":
    main()
