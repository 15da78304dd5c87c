"""The parts that a supervisor keeps running, each behind the same few verbs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote, urlsplit

import httpx
import structlog

from approvaltrail.local.broker import BrokerError, BrokerProcess
from approvaltrail.local.child import Child, ChildError
from approvaltrail.local.engine import EngineProcess
from approvaltrail.local.errors import PartStartError

READY_WITHIN_SECONDS: Final = 60.0
_LOOK_AGAIN_SECONDS: Final = 0.1
_CACHE_AFTER_SECONDS: Final = 60.0
"""Whoever starts everything for the first time has the machine to himself for so long."""
_PROBE_SECONDS: Final = 2.0
_LOG_LINES: Final = 5


class Part(Protocol):
    """A process that is started, watched, started again and stopped."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def pid(self) -> int | None:
        """Its process id, None before the first start."""
        ...

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        ...

    @property
    def address(self) -> str | None:
        """Where it is reached, without any password."""
        ...

    def start(self) -> None:
        """Start it and return once it is ready; an error names the log."""
        ...

    def stop(self) -> None:
        """Ask it to end; kill it when it has not after a while."""
        ...


class BrokerPart:
    """The embedded Kafka."""

    name = "broker"

    def __init__(self, process: BrokerProcess, log: Path) -> None:
        self.process = process
        self.address: str | None = None
        """Bootstrap servers, known once it was started."""
        self._log = log
        self._cache_timer: threading.Timer | None = None

    @property
    def pid(self) -> int | None:
        """The JVM's process id."""
        return self.process.pid

    @property
    def running(self) -> bool:
        """Whether the JVM is alive."""
        return self.process.running

    def start(self) -> None:
        """Start Kafka and wait for it; raises BrokerError or ChildError."""
        _show_log_as(self._log, self.process.data / "broker.log")
        self.process.start()
        try:
            self.address = self.process.wait_ready(READY_WITHIN_SECONDS).bootstrap_servers
        except BaseException:
            self.process.kill()
            raise
        if self._cache_timer is None and not self.process.has_startup_cache:
            self._cache_timer = threading.Timer(_CACHE_AFTER_SECONDS, self._make_startup_cache)
            self._cache_timer.daemon = True
            self._cache_timer.start()

    def stop(self) -> None:
        """Shut Kafka down."""
        if self._cache_timer is not None:
            self._cache_timer.cancel()
        self.process.stop()

    def _make_startup_cache(self) -> None:
        log = structlog.get_logger("approvaltrail.local")
        try:
            self.process.make_startup_cache()
        except (BrokerError, ChildError, OSError) as error:
            log.info("startup_cache_not_made", error=type(error).__name__)
        else:
            log.info("startup_cache_made", made=self.process.has_startup_cache)


class EnginePart:
    """The embedded ClickHouse engine."""

    name = "engine"

    def __init__(self, process: EngineProcess, log: Path) -> None:
        self.process = process
        self.address: str | None = None
        """Its URL, known once it was started."""
        self._log = log

    @property
    def pid(self) -> int | None:
        """The engine's process id."""
        return self.process.pid

    @property
    def running(self) -> bool:
        """Whether the engine is alive."""
        return self.process.running

    def start(self) -> None:
        """Start the engine and wait for it; raises EngineError or ChildError."""
        _show_log_as(self._log, self.process.data / "engine.log")
        self.process.start()
        try:
            self.address = self.process.wait_ready(READY_WITHIN_SECONDS).url
        except BaseException:
            self.process.kill()
            raise

    def stop(self) -> None:
        """Shut the engine down."""
        self.process.stop()

    def dsn(self, database: str, *, reader: bool = False) -> str:
        """Return the DSN of the user who may write, or of the one who may only read."""
        address = self.process.address
        user = address.reader_user if reader else address.user
        password = address.reader_password if reader else address.password
        place = urlsplit(address.url).netloc
        return f"http://{quote(user)}:{quote(password)}@{place}/{database}"


class ProgramPart:
    """One of our own programs, `python -m MODULE`, ready when its health page says so."""

    def __init__(
        self,
        name: str,
        module: str,
        *,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str],
        log: Path,
        ready_url: str,
        address: str,
        grace_seconds: float = 15.0,
    ) -> None:
        self.name = name
        self.address: str | None = address
        self._ready_url = ready_url
        self._grace_seconds = grace_seconds
        self._child = Child(
            [sys.executable, "-m", module, *arguments],
            log=log,
            environment=environment,
            grace_seconds=grace_seconds,
        )

    @property
    def pid(self) -> int | None:
        """The program's process id."""
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether the program is alive."""
        return self._child.running

    def start(self) -> None:
        """Start the program and wait until it is ready.

        Raises:
            ChildError: it cannot be run.
            PartStartError: it ended, or was not ready in time.
        """
        self._child.start()
        try:
            self._wait_ready()
        except BaseException:
            self._child.kill()
            raise

    def stop(self) -> None:
        """Ask the program to end."""
        self._child.stop(self._grace_seconds)

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_WITHIN_SECONDS
        with httpx.Client(timeout=_PROBE_SECONDS, trust_env=False) as client:
            while time.monotonic() < deadline:
                if not self._child.running:
                    raise self._failed(f"ended with exit code {self._child.exit_code}")
                if _answers(client, self._ready_url):
                    return
                time.sleep(_LOOK_AGAIN_SECONDS)
        raise self._failed(f"was not ready within {READY_WITHIN_SECONDS:g} s")

    def _failed(self, what: str) -> PartStartError:
        tail = "\n".join(self._child.log_tail().splitlines()[-_LOG_LINES:])
        return PartStartError(f"the {self.name} {what}: see {self._child.log}\n{tail}".rstrip())


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).is_success
    except httpx.HTTPError:
        return False


def _show_log_as(shown: Path, real: Path) -> None:
    """Let the logs folder hold a link to a log that its part keeps beside its data."""
    if shown.is_symlink() or shown.exists():
        return
    shown.symlink_to(real)
