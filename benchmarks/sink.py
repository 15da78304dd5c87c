"""Storing: events a second through topic and tables, beside a sink that decodes and inserts.

`python -m benchmarks.sink --json [--events N] [--rounds R]`. Both sinks read the same topic into
fresh tables with every view. A third candidate is the engine alone, fed the same blocks without
Kafka. Then each view is dropped in turn, and groups of columns are not stored, to show their share.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from approvaltrail.consumers.block import Block, BlockBuilder
from approvaltrail.consumers.settings import SinkSettings
from approvaltrail.schemas.contract import event_contract
from approvaltrail.schemas.topics import EVENTS
from approvaltrail.store.connection import Store, open_store
from approvaltrail.store.writing import insert_events
from benchmarks import traffic
from benchmarks.harness import Figure, arguments, show
from benchmarks.stack import Stack, cpu_seconds, running_stack, wait_until

AT_ONCE: Final = 2
"""As the sink does, a batch goes to the engine as two blocks side by side."""
BLOCK_EVENTS: Final = SinkSettings.model_fields["flush_events"].default // AT_ONCE
COLUMN_GROUPS: Final = {
    "identities": ("producer_id", "acceptance_id", "spent_claim_id"),
    "times": ("recorded_at", "issued_at", "expires_at", "spent_at"),
    "digests": ("plan_hash", "credential_id", "request_id", "session_id", "trace_id"),
    "nonce": ("nonce",),
    "names": (
        "service",
        "instance",
        "tenant",
        "tool",
        "action",
        "key_id",
        "principal",
        "client_name",
    ),
    "target and summary": ("target", "plan_summary"),
    "addresses": ("peer_address", "client_address", "address_source"),
    "token's own": ("token_tenant", "token_tool", "token_target", "token_plan_hash"),
    "position": ("kafka_partition", "kafka_offset", "schema_fingerprint"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run took; processor time is that of the sink's own process, or of the engine's."""

    events_per_second: float
    cpu_seconds_per_million: float
    engine_cpu_seconds_per_million: float


@dataclass(slots=True)
class Bench:
    """A topic full of events, the same events as blocks, and what was measured on them."""

    stack: Stack
    prefix: str
    events: int
    blocks: list[Block] = field(default_factory=list)
    bytes_per_event: float = 0.0

    def fill(self) -> None:
        """Put the events into the topic, and into blocks as large as the sink makes them."""
        builder, gathered = BlockBuilder(event_contract()), []

        def both() -> Iterator[traffic.Message]:
            for message in traffic.messages(self.events):
                gathered.append(message)
                if len(gathered) == BLOCK_EVENTS:
                    self.blocks.append(builder.build(gathered))
                    gathered.clear()
                yield message

        topic = f"{self.prefix}{EVENTS}"
        self.bytes_per_event = traffic.send(self.stack.bootstrap_servers, topic, both())
        if gathered:
            self.blocks.append(builder.build(gathered))

    def product(self) -> Run:
        """Run the product's sink over the topic."""
        return self._through("approvaltrail.consumers.sink")

    def decoding(self) -> Run:
        """Run the plain sink over the topic."""
        return self._through("benchmarks.decoding_sink")

    def engine_alone(self) -> Run:
        """Insert the blocks one after the other, without Kafka."""
        return self.inserted(self.blocks, [])

    def inserted(self, blocks: Sequence[Block], changes: Sequence[str]) -> Run:
        """Insert blocks into a fresh database that was changed by these statements."""
        dsn = self.stack.fresh_database()
        with open_store(dsn, timeout_seconds=300) as store:
            for change in changes:
                store.command(change)
            self.stack.settle()
            engine_before, begun = self._engine_cpu(), time.perf_counter()
            with ThreadPoolExecutor(AT_ONCE) as threads:
                list(threads.map(partial(_insert, store), blocks))
            seconds = time.perf_counter() - begun
            engine = self._engine_cpu() - engine_before
        self.stack.drop_database(dsn)
        events = sum(block.events for block in blocks)
        return _run(events, seconds, 0.0, engine)

    def _through(self, module: str) -> Run:
        dsn = self.stack.fresh_database()
        with open_store(dsn, timeout_seconds=300) as store:
            child = self.stack.program(module, self.stack.sink_environment(self.prefix, dsn))
            try:
                wait_until(lambda: _rows(store), "the first rows", 0.005)
                first, begun = _rows(store), time.perf_counter()
                before, engine_before = cpu_seconds(child.pid), self._engine_cpu()
                wait_until(lambda: self._all_stored(store), "every event")
                seconds = time.perf_counter() - begun
                own = cpu_seconds(child.pid) - before
                engine = self._engine_cpu() - engine_before
            finally:
                child.stop()
        self.stack.drop_database(dsn)
        return _run(self.events - first, seconds, own, engine)

    def _all_stored(self, store: Store) -> bool:
        """Look closely only when there are rows enough: a sink may store some twice."""
        if _rows(store) < self.events:
            return False
        distinct = store.query("SELECT uniqExact(event_id) FROM events").scalar()
        return bool(distinct == self.events)

    def _engine_cpu(self) -> float:
        return cpu_seconds(self.stack.engine.pid)


def _run(events: int, seconds: float, own: float, engine: float) -> Run:
    millions = events / 1_000_000
    return Run(
        events_per_second=events / seconds,
        cpu_seconds_per_million=own / millions,
        engine_cpu_seconds_per_million=engine / millions,
    )


def _insert(store: Store, block: Block) -> None:
    insert_events(store, block.data, block.fence, block.contract.fingerprint)


def _rows(store: Store) -> int:
    return int(store.query("SELECT count() FROM events").scalar())


def interleaved(candidates: dict[str, Callable[[], Run]], rounds: int) -> dict[str, Run]:
    """Run the candidates in turn, round after round, and return each one's medians."""
    seen: dict[str, list[Run]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, candidate in candidates.items():
            seen[name].append(candidate())
    return {name: _median(runs) for name, runs in seen.items()}


def _median(runs: Sequence[Run]) -> Run:
    names = Run.__slots__
    return Run(**{name: statistics.median(getattr(run, name) for run in runs) for name in names})


def rates(bench: Bench, rounds: int) -> Iterator[Figure]:
    """Compare the product's sink, the plain one, and the engine alone."""
    seen = interleaved(
        {"product": bench.product, "plain": bench.decoding, "engine": bench.engine_alone}, rounds
    )
    product, plain, engine = seen["product"], seen["plain"], seen["engine"]
    yield Figure(name="event in the topic", value=bench.bytes_per_event, unit="bytes")
    for name, baseline in (("decode and insert", plain), ("the engine alone", engine)):
        yield Figure(
            name=f"sink / {name}",
            value=product.events_per_second,
            unit="events/s",
            baseline=baseline.events_per_second,
        )
    yield Figure(
        name="sink's own processor time / decode and insert",
        value=product.cpu_seconds_per_million,
        unit="s per million",
        baseline=plain.cpu_seconds_per_million,
    )
    yield Figure(
        name="engine's processor time behind the sink / fed alone",
        value=product.engine_cpu_seconds_per_million,
        unit="s per million",
        baseline=engine.engine_cpu_seconds_per_million,
    )


def shares(bench: Bench, events: int, rounds: int) -> Iterator[Figure]:
    """Yield what the engine spends on each view and group of columns, by leaving it out.

    The views read the columns, so columns are left out of a table without views. Merges come when
    they come, so they are held back.
    """
    blocks = bench.blocks[: max(1, events // BLOCK_EVENTS)]
    views = _views(bench.stack)
    no_views = [f"DROP VIEW {view}" for view in views]
    left_out = {view: [f"DROP VIEW {view}"] for view in views} | {"every view": no_views}
    for name, columns in COLUMN_GROUPS.items():
        left_out[f"columns: {name}"] = [*no_views, _not_stored(bench.stack, columns)]
    candidates: dict[str, Callable[[], Run]] = {
        name: partial(bench.inserted, blocks, ["SYSTEM STOP MERGES", *statements])
        for name, statements in {"all": [], **left_out}.items()
    }
    used = {
        name: run.engine_cpu_seconds_per_million
        for name, run in interleaved(candidates, rounds).items()
    }
    yield Figure(name="engine, everything stored", value=used["all"], unit="CPU s per million")
    for name in left_out:
        whole = used["every view" if name.startswith("columns") else "all"]
        yield Figure(
            name=f"share of {name}",
            value=whole - used[name],
            unit="CPU s per million",
            baseline=used["all"],
        )


def _views(stack: Stack) -> list[str]:
    dsn = stack.fresh_database()
    with open_store(dsn) as store:
        rows = store.query(
            "SELECT name FROM system.tables WHERE database = currentDatabase() "
            "AND engine = 'MaterializedView' AND name LIKE '%_from_events' ORDER BY name"
        ).rows
    stack.drop_database(dsn)
    return [row[0] for row in rows]


def _not_stored(stack: Stack, columns: Sequence[str]) -> str:
    """Return the statement after which an insert may name the columns and nothing keeps them."""
    dsn = stack.fresh_database()
    with open_store(dsn) as store:
        kinds = dict(
            store.query(
                "SELECT name, type FROM system.columns WHERE database = currentDatabase() "
                "AND table = 'events'"
            ).rows
        )
    stack.drop_database(dsn)
    parts = [f"MODIFY COLUMN {name} {kinds[name]} EPHEMERAL" for name in columns]
    return "ALTER TABLE events " + ", ".join(parts)


def figures(events: int, rounds: int, share_events: int) -> Iterator[Figure]:
    """Measure everything."""
    with running_stack() as stack:
        bench = Bench(stack, stack.fresh_topics(), events)
        bench.fill()
        yield from rates(bench, rounds)
        if share_events:
            yield from shares(bench, share_events, rounds)


def main() -> None:
    """Measure and print."""
    chosen = arguments(__doc__, events=1_000_000, rounds=3, share_events=400_000)
    show(list(figures(chosen.events, chosen.rounds, chosen.share_events)), as_json=chosen.json)


if __name__ == "__main__":
    main()
