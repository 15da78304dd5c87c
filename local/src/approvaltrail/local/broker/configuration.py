"""A broker's `server.properties` and its JVM's options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HOST = "127.0.0.1"
"""The only address a broker of ours listens on."""

JVM_OPTIONS = (
    "-Xms64m",
    "-Xmx256m",
    "-Xss512k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    "-Dfile.encoding=UTF-8",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker's place in its cluster."""

    node_id: int
    port: int
    controller_port: int

    @property
    def voter(self) -> str:
        """This node as the quorum's list names it."""
        return f"{self.node_id}@{HOST}:{self.controller_port}"


def server_properties(node: Node, voters: tuple[Node, ...], data: str) -> dict[str, str]:
    """Return the properties of one node: combined roles, loopback, durable, quick to come back."""
    single = len(voters) == 1
    copies, in_sync = ("1", "1") if single else ("3", "2")
    # A lone broker that was killed is fenced by its own stale session until this has passed.
    session_ms, heartbeat_ms = ("1000", "200") if single else ("3000", "500")
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.node_id),
        "controller.quorum.voters": ",".join(voter.voter for voter in voters),
        "listeners": f"PLAINTEXT://{HOST}:{node.port},CONTROLLER://{HOST}:{node.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{node.port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": data,
        "auto.create.topics.enable": "false",
        "num.partitions": "3",
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "unclean.leader.election.enable": "false",
        **_internal_topics(copies, in_sync),
        "group.initial.rebalance.delay.ms": "0",
        "broker.session.timeout.ms": session_ms,
        "broker.heartbeat.interval.ms": heartbeat_ms,
        # Both are needed: the first says how old unflushed records may be, the second how often
        # anybody looks (never, by default). Kafka begins to look 30 s after a start.
        "log.flush.interval.ms": "50",
        "log.flush.scheduler.interval.ms": "50",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
        "num.recovery.threads.per.data.dir": "2",
        "log.cleaner.dedupe.buffer.size": str(4 << 20),
    }


def _internal_topics(copies: str, in_sync: str) -> dict[str, str]:
    return {
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "1",
    }


def write_properties(path: Path, properties: dict[str, str]) -> None:
    """Write a Java properties file; Java reads a backslash as an escape."""
    lines = (f"{key}={value}".replace("\\", "\\\\") for key, value in properties.items())
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
