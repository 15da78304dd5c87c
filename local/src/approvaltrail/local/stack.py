"""Everything on one machine, put together: servers, topics and tables, sink, dashboard."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import structlog

from approvaltrail.local.broker import BrokerProcess, ensure_jars
from approvaltrail.local.broker.ports import free_ports
from approvaltrail.local.data_folder import DataFolder, RunFile
from approvaltrail.local.engine import EngineProcess
from approvaltrail.local.parts import BrokerPart, EnginePart, Part, ProgramPart
from approvaltrail.local.settings import LocalSettings
from approvaltrail.local.supervisor import Supervisor
from approvaltrail.local.topics import bring_up_to_date
from approvaltrail.store.connection import open_store
from approvaltrail.store.migrations import migrate

JarProgress = Callable[[int, int, str], None]
"""Called with (jars done, jars in all, name of the last one)."""
HOST: Final = "127.0.0.1"
DATABASE: Final = "approvaltrail"
_BOOT_DATABASE: Final = "default"
_SINK_INSTANCE: Final = "local"
_PASSED_ON: Final = ("APPROVALTRAIL_", "KAFKA_")
_KEPT_BACK: Final = ("CONFIRM_SECRET", "CONTROL_DSN", "CLICKHOUSE", "JOURNAL", "PORT")
"""Pieces of names whose values are nobody's business but the gate's, or are set part by part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Where broker and store are reached. DSNs hold passwords."""

    kafka_bootstrap_servers: str
    writer_dsn: str = field(repr=False)
    reader_dsn: str = field(repr=False)
    embedded_kafka: bool


class Stack:
    """Starts the parts that are not given, in order, and says where everything is."""

    def __init__(
        self,
        settings: LocalSettings,
        folder: DataFolder,
        supervisor: Supervisor,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment` is where settings of the parts come from: the owner's variables."""
        self.settings = settings
        self.folder = folder
        self.supervisor = supervisor
        self._environment = dict(os.environ if environment is None else environment)
        self._log = structlog.get_logger("approvaltrail.local")

    def fetch_jars(self, progress: JarProgress | None = None) -> None:
        """Have Kafka's jars in the cache, unless a broker is given. Raises JarError."""
        if self.settings.kafka_bootstrap_servers is None:
            ensure_jars(self.settings.jar_cache, offline=self.settings.offline, progress=progress)

    def start_servers(self) -> Servers:
        """Start broker and engine unless given, and bring topics and tables up to date."""
        broker = self._broker()
        engine = self._engine()
        self.supervisor.start([part for part in (broker, engine) if part is not None])
        servers = self._servers(broker, engine)
        self._prepare(servers, engine)
        return servers

    def start_programs(self, servers: Servers, *, dashboard: bool = True) -> RunFile:
        """Start sink and dashboard and return the run file's content."""
        sink_port, dashboard_port = free_ports(2)
        sink_port = self.settings.sink_health_port or sink_port
        dashboard_port = self.settings.dashboard_port or dashboard_port
        programs: list[Part] = [self._sink(servers, sink_port)]
        if dashboard:
            programs.append(self._dashboard(servers, dashboard_port))
        self.supervisor.start(programs)
        return RunFile(
            pid=os.getpid(),
            started_at=datetime.now(UTC),
            kafka_bootstrap_servers=servers.kafka_bootstrap_servers,
            clickhouse_dsn=servers.writer_dsn,
            clickhouse_reader_dsn=servers.reader_dsn,
            topic_prefix=self.settings.topic_prefix,
            dashboard_url=f"http://{HOST}:{dashboard_port}" if dashboard else None,
            sink_health_url=f"http://{HOST}:{sink_port}",
        )

    def _broker(self) -> BrokerPart | None:
        if self.settings.kafka_bootstrap_servers is not None:
            return None
        process = BrokerProcess(
            self.folder.broker,
            self.settings.broker_port,
            jar_cache=self.settings.jar_cache,
            offline=self.settings.offline,
        )
        return BrokerPart(process, self.folder.log("broker"))

    def _engine(self) -> EnginePart | None:
        if self.settings.clickhouse_dsn is not None:
            return None
        process = EngineProcess(self.folder.engine, self.settings.engine_port)
        return EnginePart(process, self.folder.log("engine"))

    def _servers(self, broker: BrokerPart | None, engine: EnginePart | None) -> Servers:
        kafka = broker.address if broker is not None else self.settings.kafka_bootstrap_servers
        if engine is not None:
            writer, reader = engine.dsn(DATABASE), engine.dsn(DATABASE, reader=True)
        else:
            writer = self.settings.given_writer_dsn() or ""
            reader = self.settings.given_reader_dsn() or ""
        return Servers(
            kafka_bootstrap_servers=kafka or "",
            writer_dsn=writer,
            reader_dsn=reader,
            embedded_kafka=broker is not None,
        )

    def _prepare(self, servers: Servers, engine: EnginePart | None) -> None:
        if engine is not None:
            boot = open_store(engine.dsn(_BOOT_DATABASE))
            boot.command(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
            boot.close()
        store = open_store(servers.writer_dsn)
        applied = migrate(store)
        store.close()
        asyncio.run(
            bring_up_to_date(
                servers.kafka_bootstrap_servers,
                self.settings.topic_prefix,
                embedded=servers.embedded_kafka,
            )
        )
        self._log.info("servers_prepared", migrations=len(applied))

    def _sink(self, servers: Servers, port: int) -> ProgramPart:
        own = {
            "APPROVALTRAIL_KAFKA_BOOTSTRAP_SERVERS": servers.kafka_bootstrap_servers,
            "APPROVALTRAIL_CLICKHOUSE_DSN": servers.writer_dsn,
            "APPROVALTRAIL_HEALTH_HOST": HOST,
            "APPROVALTRAIL_HEALTH_PORT": str(port),
            "APPROVALTRAIL_TOPIC_PREFIX": self.settings.topic_prefix,
        }
        if servers.embedded_kafka:
            # Nobody else has this name, so that Kafka gives a killed sink its partitions back
            # at once (KIP-345); another sink gets them after the least time that Kafka allows.
            own["APPROVALTRAIL_SINK_INSTANCE"] = _SINK_INSTANCE
            own["APPROVALTRAIL_SESSION_TIMEOUT_MS"] = "6000"
        return ProgramPart(
            "sink",
            "approvaltrail.consumers.sink",
            environment={**self._passed_on(kafka=not servers.embedded_kafka), **own},
            log=self.folder.log("sink"),
            ready_url=f"http://{HOST}:{port}/readyz",
            address=f"http://{HOST}:{port}",
        )

    def _dashboard(self, servers: Servers, port: int) -> ProgramPart:
        own = {"APPROVALTRAIL_CLICKHOUSE_DSN": servers.reader_dsn}
        return ProgramPart(
            "dashboard",
            "approvaltrail.dashboard",
            arguments=["--port", str(port)],
            environment={**self._passed_on(kafka=False), **own},
            log=self.folder.log("dashboard"),
            ready_url=f"http://{HOST}:{port}/_stcore/health",
            address=f"http://{HOST}:{port}",
        )

    def _passed_on(self, *, kafka: bool) -> dict[str, str]:
        """Return the owner's variables that concern a part; those of a given Kafka if asked."""
        return {
            name: value
            for name, value in self._environment.items()
            if name.upper().startswith(_PASSED_ON)
            and not any(piece in name.upper() for piece in _KEPT_BACK)
            and (kafka or "KAFKA" not in name.upper())
        }
