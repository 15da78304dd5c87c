"""A whole pipeline whose parts may be killed: broker, engine, sinks, and a recording process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.chaos.notebook import Reader
from tests.chaos.recorder import settings_of
from tests.consumers.process import SinkProcess
from tests.support.processes import wait_until
from tests.support.services import dsn

from approvaltrail.consumers.settings import SinkSettings
from approvaltrail.consumers.topics_admin import ensure_topics
from approvaltrail.local.broker import BrokerProcess
from approvaltrail.local.engine import EngineProcess
from approvaltrail.producer import Producer
from approvaltrail.producer.inspection import list_journals
from approvaltrail.store.connection import Store, open_store
from approvaltrail.store.migrations import migrate

if TYPE_CHECKING:
    from approvaltrail.producer.settings import ProducerSettings

_ROOT = Path(__file__).parents[2]
FLUSH = {"flush_events": "300", "flush_interval_ms": "20", "retry_longest_seconds": "0.5"}
"""Small batches, so that a kill finds one on its way."""


class GroupSink(SinkProcess):
    """A sink that also says how much of the group's work is its own."""

    @property
    def partitions(self) -> int:
        """How many partitions it has now."""
        answer = self._ask("readyz")
        return int(answer.json()["partitions"]) if answer is not None else 0


class World:
    """Servers, a fresh database and topics, and the programs between them."""

    def __init__(self, folder: Path, broker: BrokerProcess, engine: EngineProcess) -> None:
        self.folder = folder
        self.broker = broker
        self.engine = engine
        self.prefix = f"chaos-{uuid.uuid4().hex[:8]}-"
        self.notes = Reader(folder / "notebook")
        self.sinks: dict[str, GroupSink] = {}
        self.recorder: subprocess.Popen[str] | None = None
        self.dsn = self._new_database()
        asyncio.run(ensure_topics(broker.bootstrap_servers, self.prefix, single_machine=True))

    @contextmanager
    def store(self) -> Iterator[Store]:
        """Open the store; answers are not waited for long."""
        with open_store(self.dsn, timeout_seconds=10) as store:
            yield store

    def start_sink(self, name: str, *, static: bool = False, **changes: str) -> GroupSink:
        """Start a sink of the one group; a static one takes its partitions back at once."""
        settings = SinkSettings(
            kafka_bootstrap_servers=self.broker.bootstrap_servers,
            clickhouse_dsn=self.dsn,
            topic_prefix=self.prefix,
            sink_group_id=f"{self.prefix}sink",
            sink_instance=name if static else None,
        )
        log = self.folder / f"sink-{name}.log"
        self.sinks[name] = GroupSink(settings, log, **{**FLUSH, **changes})
        return self.sinks[name]

    def start_recorder(self) -> None:
        """Start the process that embeds a producer; it resumes the journal of the one before."""
        log = (self.folder / "recorder.log").open("ab")
        self.recorder = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.chaos.recorder", str(self.journals)),
                *(self.broker.bootstrap_servers, self.prefix, str(self.folder / "notebook")),
            ],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )

    @property
    def journals(self) -> Path:
        """Where the recording process keeps its journal."""
        return self.folder / "journals"

    def kill_recorder(self) -> None:
        """End the recording process with SIGKILL."""
        assert self.recorder is not None
        self.recorder.kill()
        self.recorder.wait(10)

    def stop_recorder(self) -> None:
        """Let the recording process close its journal in order, or as far as it comes."""
        assert self.recorder is not None
        assert self.recorder.stdout is not None
        assert self.recorder.stdout.readline() == "ready\n"
        self.recorder.terminate()
        assert self.recorder.wait(30) == 0, (self.folder / "recorder.log").read_text()[-2_000:]

    def producer_settings(self, directory: Path | None = None) -> ProducerSettings:
        """Return settings of a producer in this process."""
        return settings_of(directory or self.journals, self.broker.bootstrap_servers, self.prefix)

    @property
    def recorded(self) -> int:
        """How many events the journals have numbered, by their own word."""
        return sum(report.last_sequence for report in list_journals(self.journals))

    def drain(self, directory: Path | None = None) -> None:
        """Deliver what a journal still holds, and close it in order."""
        producer = Producer(self.producer_settings(directory))
        producer.start()
        wait_until(lambda: not producer.health().pending, "the journal is delivered", 60)
        assert producer.close_sync(20).pending == 0

    def restart_engine(self) -> None:
        """Start the engine again where it was."""
        self.engine.start()
        self.engine.wait_ready()

    def restart_broker(self) -> None:
        """Start the broker again where it was."""
        self.broker.start()
        self.broker.wait_ready()

    def stop(self) -> None:
        """End every program."""
        for sink in self.sinks.values():
            sink.stop()
        if self.recorder is not None and self.recorder.poll() is None:
            os.kill(self.recorder.pid, signal.SIGKILL)
            self.recorder.wait(10)

    def _new_database(self) -> str:
        address = self.engine.address
        name = f"chaos_{uuid.uuid4().hex[:8]}"
        with open_store(dsn(address.url, address.user, address.password, "default")) as store:
            store.command(f"CREATE DATABASE {name}")
        made = dsn(address.url, address.user, address.password, name)
        assert urlsplit(made).path == f"/{name}"
        with open_store(made) as store:
            migrate(store)
        return made
