"""A broker and an engine of a benchmark's own, in a temporary folder that goes with it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from approvaltrail.consumers.topics_admin import ensure_topics
from approvaltrail.local.broker import BrokerProcess
from approvaltrail.local.child import Child
from approvaltrail.local.engine import EngineProcess
from approvaltrail.store.connection import open_store
from approvaltrail.store.migrations import migrate

PATIENCE_SECONDS: Final = 900.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Stack:
    """Running servers, and fresh databases, topics and programs on them."""

    folder: Path
    engine: EngineProcess
    broker: BrokerProcess | None = None
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka is."""
        if self.broker is None:
            raise RuntimeError("this stack was started without a broker: pass kafka=True")
        return self.broker.bootstrap_servers

    def fresh_database(self) -> str:
        """Make a database with all tables and return its DSN."""
        dsn = self.dsn(f"bench_{next(self._numbers)}")
        with open_store(self.dsn("default")) as store:
            store.command(f"CREATE DATABASE {urlsplit(dsn).path.removeprefix('/')}")
        with open_store(dsn) as store:
            migrate(store)
        return dsn

    def drop_database(self, dsn: str) -> None:
        """Remove a database and its files."""
        with open_store(self.dsn("default")) as store:
            store.command(f"DROP DATABASE {urlsplit(dsn).path.removeprefix('/')} SYNC")

    def settle(self) -> None:
        """Let the engine finish what it does by itself: merges of what was inserted before."""

        def quiet() -> bool:
            before = cpu_seconds(self.engine.pid)
            time.sleep(0.3)
            return cpu_seconds(self.engine.pid) - before < 0.03

        wait_until(quiet, "the engine is idle")

    def dsn(self, database: str) -> str:
        """Return the writing user's DSN of a database."""
        address = self.engine.address
        user = f"{quote(address.user)}:{quote(address.password)}"
        return f"http://{user}@{urlsplit(address.url).netloc}/{database}"

    def fresh_topics(self) -> str:
        """Make all topics as on a single machine and return their prefix."""
        prefix = f"bench{next(self._numbers)}-"
        asyncio.run(ensure_topics(self.bootstrap_servers, prefix, single_machine=True))
        return prefix

    def program(self, module: str, environment: Mapping[str, str]) -> Child:
        """Start `python -m module`; its log is in the folder."""
        number = next(self._numbers)
        child = Child(
            [sys.executable, "-m", module],
            log=self.folder / f"{module}.{number}.log",
            environment=environment,
        )
        child.start()
        return child

    def sink(self, prefix: str, dsn: str, **settings: str) -> Child:
        """Start a sink process with its defaults, but for the settings given."""
        return self.program(
            "approvaltrail.consumers.sink", self.sink_environment(prefix, dsn, **settings)
        )

    def sink_environment(self, prefix: str, dsn: str, **settings: str) -> dict[str, str]:
        """Return what a sink between these topics and this database has in its environment."""
        values = {
            "kafka_bootstrap_servers": self.bootstrap_servers,
            "clickhouse_dsn": dsn,
            "topic_prefix": prefix,
            "sink_group_id": f"{prefix}{next(self._numbers)}",
            "log_level": "warning",
            "repair_interval_seconds": "0",
            **settings,
        }
        return {f"APPROVALTRAIL_{name.upper()}": value for name, value in values.items()}


@contextlib.contextmanager
def running_stack(*, kafka: bool = True) -> Iterator[Stack]:
    """Run the servers while the block runs; nothing of them is left afterwards."""
    with (
        tempfile.TemporaryDirectory(
            prefix="approvaltrail-bench-", ignore_cleanup_errors=True
        ) as name,
        contextlib.ExitStack() as stack,
    ):
        folder = Path(name)
        engine = EngineProcess(folder / "engine")
        stack.callback(engine.stop)
        engine.start()
        broker = BrokerProcess(folder / "broker") if kafka else None
        if broker is not None:
            stack.callback(broker.stop)
            broker.start()
            broker.wait_ready()
        engine.wait_ready()
        yield Stack(folder=folder, engine=engine, broker=broker)


def cpu_seconds(pid: int | None) -> float:
    """Return the processor time (user and system) that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def wait_until(holds: Callable[[], object], what: str, every_seconds: float = 0.02) -> None:
    """Wait for a condition; a benchmark that hangs fails with its name."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {PATIENCE_SECONDS:g} s: {what}")
        time.sleep(every_seconds)
