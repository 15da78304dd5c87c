"""Waiting for processes and conditions, with deadlines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def wait_until(condition: Callable[[], object], what: str, seconds: float = 20.0) -> None:
    """Wait for a condition; fail with its name past the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def sigkill(pid: int) -> None:
    """Kill, as a machine short of memory does."""
    os.kill(pid, signal.SIGKILL)


def owner_of(code: str) -> tuple[subprocess.Popen[str], int]:
    """Run code in a process of its own; it prints the pid of its child and then waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", code + "\nimport time; time.sleep(300)"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())
