"""The embedded broker as its users see it: a folder in, an address out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from approvaltrail.local.broker import startup_cache
from approvaltrail.local.broker.broker import Broker, single
from approvaltrail.local.broker.errors import BrokerError, PortTakenError
from approvaltrail.local.broker.jars import ensure_jars

if TYPE_CHECKING:
    from pathlib import Path

    from approvaltrail.local.broker.jars import Progress

_OTHER_PORTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAddress:
    """Where a running broker is reached."""

    bootstrap_servers: str
    cluster_id: str


class BrokerProcess:
    """One broker with its state in `data`.

    `port` None picks a free one at the first start and keeps it over restarts, so that clients
    find the broker again. Jars are fetched at start if the cache lacks them; `progress` is told.
    """

    def __init__(
        self,
        data: Path,
        port: int | None = None,
        *,
        jar_cache: Path | None = None,
        offline: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.data = data
        self._port = port
        self._picks_port = port is None
        self._jar_cache = jar_cache
        self._offline = offline
        self._progress = progress
        self._broker: Broker | None = None
        self._cache_maker: Broker | None = None

    @property
    def pid(self) -> int | None:
        """The JVM's process id, None before the first start."""
        return self._broker.pid if self._broker else None

    @property
    def running(self) -> bool:
        """Whether the JVM is alive."""
        return self._broker is not None and self._broker.running

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect; the port is known once started."""
        return self._started().bootstrap_servers

    def start(self) -> BrokerProcess:
        """Start Kafka. Raises JarError, PortTakenError, FolderInUseError or BrokerError."""
        if self.running:
            raise BrokerError(f"the broker on {self.data} already runs: stop it first")
        jars = ensure_jars(self._jar_cache, offline=self._offline, progress=self._progress)
        for attempt in range(1, _OTHER_PORTS + 1):
            self._broker = single(self.data, jars, self._port)
            try:
                self._broker.start()
            except PortTakenError:
                if not self._picks_port or attempt == _OTHER_PORTS:
                    raise
                self._port = None
            else:
                self._port = self._broker.node.port
                break
        return self

    def wait_ready(self, timeout_seconds: float = 60.0) -> BrokerAddress:
        """Return the address once the broker serves; raises as `Broker.wait_ready`."""
        broker = self._started().wait_ready(timeout_seconds)
        return BrokerAddress(
            bootstrap_servers=broker.bootstrap_servers, cluster_id=broker.cluster_id or ""
        )

    @property
    def has_startup_cache(self) -> bool:
        """Whether the next start takes half the time."""
        return startup_cache.cache_file(self.data).exists()

    def make_startup_cache(self) -> None:
        """Make what lets the next starts take half the time; takes half a minute of one core.

        `stop` ends it; then there is none. Raises BrokerError or ChildError.
        """
        jars = ensure_jars(self._jar_cache, offline=self._offline)

        def maker(folder: Path, options: tuple[str, ...]) -> Broker:
            self._cache_maker = single(folder, jars, jvm_options=options, nice=True)
            return self._cache_maker

        startup_cache.make(self.data, maker)

    def stop(self, timeout_seconds: float = 20.0) -> None:
        """Shut down cleanly; past the time, kill."""
        if self._cache_maker is not None:
            self._cache_maker.kill()
        if self._broker is not None:
            self._broker.stop(timeout_seconds)

    def kill(self) -> None:
        """End the JVM with SIGKILL and wait until it is gone."""
        if self._broker is not None:
            self._broker.kill()

    def log_tail(self) -> str:
        """Return the end of the broker's log."""
        return self._broker.log_tail() if self._broker is not None else ""

    def _started(self) -> Broker:
        if self._broker is None:
            raise BrokerError(f"the broker on {self.data} was not started: call start() first")
        return self._broker
