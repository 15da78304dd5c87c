"""Children of ours never outlive whoever started them."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.processes import is_alive, owner_of, sigkill, wait_until

from approvaltrail.local.child import Child, ChildError

if TYPE_CHECKING:
    from collections.abc import Iterator

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('up', flush=True); time.sleep(300)"
)
POLITE = (
    "import signal, sys, time\n"
    "def bye(*_): print('bye', flush=True); sys.exit(7)\n"
    "signal.signal(signal.SIGTERM, bye); print('up', flush=True); time.sleep(300)"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Give a log's path."""
    return tmp_path / "child.log"


@pytest.fixture
def child(log: Path) -> Iterator[Child]:
    """Give a running child that ends politely."""
    one = Child([sys.executable, "-c", POLITE], log=log)
    one.start()
    wait_until(lambda: "up" in log.read_text(), "the child runs")
    yield one
    one.kill()


def test_stop_lets_a_child_end_by_itself(child: Child, log: Path) -> None:
    """A stop is a SIGTERM, and the child's own exit code comes back."""
    assert child.stop() == 7
    assert "bye" in log.read_text()
    assert not child.running


def test_kill_does_not_ask(child: Child, log: Path) -> None:
    """A kill is a SIGKILL: the child has no say."""
    assert child.kill() == 137
    assert "bye" not in log.read_text()


def test_a_child_that_ignores_stop_is_killed(log: Path) -> None:
    """Past the time given, a stop becomes a kill."""
    child = Child([sys.executable, "-c", STUBBORN], log=log)
    child.start()
    wait_until(lambda: "up" in log.read_text(), "the child runs")
    assert child.stop(timeout_seconds=0.3) == 137


def test_a_child_dies_with_the_shim(child: Child) -> None:
    """If the shim between is killed, the kernel kills the child."""
    assert child.pid is not None
    shim = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[1])
    sigkill(shim)
    wait_until(lambda: not is_alive(child.pid or 0), "the child is gone", 5)


@pytest.mark.parametrize("program", [POLITE, STUBBORN])
def test_a_child_dies_with_its_owner(program: str, log: Path) -> None:
    """When the owner is killed by SIGKILL, the child ends, willing or not."""
    owner, pid = owner_of(
        "import sys; from pathlib import Path; from approvaltrail.local.child import Child\n"
        f"log = Path({str(log)!r}); command = [sys.executable, '-c', {program!r}]\n"
        "c = Child(command, log=log, grace_seconds=0.5)\n"
        "c.start(); print(c.pid, flush=True)"
    )
    wait_until(lambda: "up" in log.read_text(), "the child runs")
    assert is_alive(pid)
    owner.kill()
    owner.wait()
    wait_until(lambda: not is_alive(pid), "the child is gone", 5)


def test_a_child_outlives_the_thread_that_started_it(log: Path) -> None:
    """A child may be started from a worker thread that ends before it."""
    child = Child([sys.executable, "-c", POLITE], log=log)
    thread = threading.Thread(target=child.start)
    thread.start()
    thread.join()
    wait_until(lambda: "up" in log.read_text(), "the child runs")
    assert child.running
    child.kill()


def test_secrets_of_the_owner_stay_with_the_owner(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child sees a few harmless variables and those it was given."""
    monkeypatch.setenv("CONFIRM_SECRET", "the-owner's")
    show = "import os; print(sorted(os.environ)); print(os.environ.get('GIVEN'))"
    child = Child([sys.executable, "-c", show], log=log, environment={"GIVEN": "yes"})
    child.start()
    child.wait()
    assert "CONFIRM_SECRET" not in log.read_text()
    assert "yes" in log.read_text()


def test_a_program_that_cannot_be_run_is_an_error(log: Path) -> None:
    """A missing program is an error that names the program and its log."""
    with pytest.raises(ChildError, match=r"cannot run /nowhere/program: see .*child\.log"):
        Child(["/nowhere/program"], log=log).start()


def test_a_full_log_is_set_aside(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log past its limit becomes `<log>.1` at the next start: disks are bounded."""
    log.write_bytes(b"x" * (16 << 20) + b"x")
    child = Child([sys.executable, "-c", "print('new')"], log=log)
    child.start()
    child.wait()
    assert log.read_text() == "new\n"
    assert log.with_name("child.log.1").exists()
