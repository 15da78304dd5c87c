"""Keeping one part running: start it, see that it ended, start it again.

After a healthy run that happens at once; pauses grow while a part does not stay up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import structlog

from approvaltrail.local.parts import Part

_FIRST_PAUSE_SECONDS: Final = 0.25
_LONGEST_PAUSE_SECONDS: Final = 30.0
STEADY_AFTER_SECONDS: Final = 10.0
"""A part that was ready for this long is started again without a pause when it ends."""
_LOOK_EVERY_SECONDS: Final = 0.05


class PartState(StrEnum):
    """How one part is doing."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStatus:
    """What the status table says of one part."""

    name: str
    state: PartState
    pid: int | None
    address: str | None
    restarts: int
    problem: str | None


class Keeper:
    """Keeps one part running from `start()` until `stop()`, in a thread of its own."""

    def __init__(self, part: Part, on_change: Callable[[PartStatus], None]) -> None:
        self.part = part
        self._on_change = on_change
        self._state = PartState.WAITING
        self._restarts = 0
        self._problem: str | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._log = structlog.get_logger("approvaltrail.local").bind(part=part.name)

    @property
    def status(self) -> PartStatus:
        """How the part is doing now."""
        return PartStatus(
            name=self.part.name,
            state=self._state,
            pid=self.part.pid if self.part.running else None,
            address=self.part.address,
            restarts=self._restarts,
            problem=self._problem,
        )

    def start(self) -> None:
        """Start the part, wait until it is ready, and keep it running from then on."""
        self._enter(PartState.STARTING)
        self.part.start()
        self._log.info("part_ready", pid=self.part.pid, address=self.part.address)
        self._enter(PartState.READY)
        self._thread = threading.Thread(
            target=self._keep, name=f"keeper-{self.part.name}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop keeping, then stop the part."""
        self._stopping.set()
        if self._state is PartState.WAITING:
            return
        self._enter(PartState.STOPPING)
        self.part.stop()
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(_LOOK_EVERY_SECONDS)
            self.part.stop()  # the thread may have been in the middle of a start
        self._log.info("part_stopped")
        self._enter(PartState.STOPPED)

    def _keep(self) -> None:
        pause, ready_at = 0.0, time.monotonic()
        while not self._stopping.wait(_LOOK_EVERY_SECONDS):
            if self.part.running:
                continue
            if time.monotonic() - ready_at > STEADY_AFTER_SECONDS:
                pause = 0.0
            self._log.warning("part_ended", pid=self.part.pid, again_after_seconds=pause)
            self._enter(PartState.RESTARTING)
            if self._stopping.wait(pause):
                return
            pause = min(max(pause * 2, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
            self._start_again()
            ready_at = time.monotonic()

    def _start_again(self) -> None:
        self._restarts += 1
        try:
            self.part.start()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next try comes after a pause
            if not self._stopping.is_set():
                self._problem = str(error).partition("\n")[0]
                self._log.warning("part_not_started", problem=self._problem)
                self._enter(PartState.RESTARTING)
            return
        self._problem = None
        self._log.info("part_ready", pid=self.part.pid, address=self.part.address)
        if not self._stopping.is_set():
            self._enter(PartState.READY)

    def _enter(self, state: PartState) -> None:
        self._state = state
        self._on_change(self.status)
