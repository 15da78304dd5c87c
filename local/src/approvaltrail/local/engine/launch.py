"""The embedded engine as its users see it: a folder in, an address out."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import httpx

from approvaltrail.local.child import Child
from approvaltrail.local.engine.errors import (
    EngineError,
    EngineFolderInUseError,
    EnginePortTakenError,
    EngineStartError,
)
from approvaltrail.local.engine.exit_codes import FOLDER_IN_USE, PORT_TAKEN
from approvaltrail.local.engine.folder import EngineAddress, read_address

if TYPE_CHECKING:
    from pathlib import Path

_LOOK_AGAIN_SECONDS = 0.05
_PATIENCE_SECONDS = 60.0


class EngineProcess:
    """The engine in a process of its own, its state in `data`, its log in `data/engine.log`.

    `port` None picks a free one at the first start and keeps it over restarts; passwords stay
    with the folder. So clients find the engine again.
    """

    def __init__(self, data: Path, port: int | None = None) -> None:
        self.data = data
        self._port = port or 0
        self._child: Child | None = None
        self._address: EngineAddress | None = None

    @property
    def pid(self) -> int | None:
        """The engine's process id, None before the first start."""
        return self._child.pid if self._child else None

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._child is not None and self._child.running

    @property
    def address(self) -> EngineAddress:
        """URL, users and passwords; known once `wait_ready` has returned."""
        if self._address is None:
            raise EngineError(f"the engine on {self.data} is not ready: call wait_ready() first")
        return self._address

    def start(self) -> EngineProcess:
        """Start the process and return at once. Raises EngineError when it already runs."""
        if self.running:
            raise EngineError(f"the engine on {self.data} already runs: stop it first")
        command = [sys.executable, "-m", "approvaltrail.local.engine"]
        command += ["--data", str(self.data), "--port", str(self._port)]
        self.data.mkdir(parents=True, exist_ok=True)
        self._child = Child(command, log=self.data / "engine.log", grace_seconds=5.0)
        self._child.start()
        return self

    def wait_ready(self, timeout_seconds: float = _PATIENCE_SECONDS) -> EngineAddress:
        """Return the address once a statement ran.

        Raises EngineFolderInUseError, EnginePortTakenError or EngineStartError.
        """
        if self._child is None:
            raise EngineError(f"the engine on {self.data} was not started: call start() first")
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            if self._child.exit_code is not None:
                raise self._why_it_ended(self._child)
            address = read_address(self.data)
            if address is not None and address.pid == self._child.pid and _is_ready(address):
                self._address = address
                self._port = address.port
                return address
            time.sleep(_LOOK_AGAIN_SECONDS)
        raise EngineStartError(
            f"the engine on {self.data} did not answer within {timeout_seconds:g} s: "
            f"see {self._child.log}\n{self._child.log_tail()}"
        )

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """Stop cleanly; past the time, kill."""
        if self._child is not None:
            self._child.stop(timeout_seconds)

    def kill(self) -> None:
        """End the process with SIGKILL and wait until it is gone."""
        if self._child is not None:
            self._child.kill()

    def log_tail(self) -> str:
        """Return the end of the engine's log."""
        return self._child.log_tail() if self._child is not None else ""

    def _why_it_ended(self, child: Child) -> EngineError:
        if child.exit_code == FOLDER_IN_USE:
            return EngineFolderInUseError(
                f"another engine runs on {self.data}: stop it, or choose another folder"
            )
        if child.exit_code == PORT_TAKEN:
            return EnginePortTakenError(
                f"port {self._port} is taken by another program: choose another port, "
                "or none and a free one is picked"
            )
        return EngineStartError(
            f"the engine on {self.data} ended with code {child.exit_code} before it was ready: "
            f"see {child.log}\n{child.log_tail()}"
        )


def _is_ready(address: EngineAddress) -> bool:
    try:
        return httpx.get(f"{address.url}/readyz", timeout=6.0, trust_env=False).is_success
    except httpx.HTTPError:
        return False
