"""Parts are started in order, started again when they end, and stopped in reverse."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.processes import is_alive, sigkill, wait_until

from approvaltrail.local.child import Child
from approvaltrail.local.errors import PartStartError
from approvaltrail.local.health import SupervisorHealth
from approvaltrail.local.keeper import PartState, PartStatus
from approvaltrail.local.parts import ProgramPart
from approvaltrail.local.supervisor import Supervisor


class Sleeper:
    """A part that is a real process which does nothing."""

    address = None

    def __init__(self, name: str, log: Path, *, fails: bool = False) -> None:
        self.name = name
        code = "import sys; sys.exit(7)" if fails else "import time; time.sleep(300)"
        self._fails = fails
        self._child = Child([sys.executable, "-c", code], log=log)

    @property
    def pid(self) -> int | None:
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child.running

    def start(self) -> None:
        self._child.start()
        if self._fails:
            self._child.wait(10)
            raise PartStartError(f"{self.name} ended with exit code {self._child.exit_code}")

    def stop(self) -> None:
        self._child.stop(5)


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    one = Supervisor()
    yield one
    one.stop()


def test_a_killed_part_is_started_again(supervisor: Supervisor, tmp_path: Path) -> None:
    """A part that was killed gets a new process, and the restart is counted."""
    supervisor.start([Sleeper("sink", tmp_path / "sink.log")])
    first = supervisor.statuses[0].pid
    assert first is not None
    sigkill(first)

    def again() -> bool:
        (status,) = supervisor.statuses
        return status.state is PartState.READY and status.pid not in {None, first}

    wait_until(again, "the part runs again")
    assert supervisor.statuses[0].restarts == 1
    assert not is_alive(first)


def test_parts_stop_in_reverse_and_none_is_left(supervisor: Supervisor, tmp_path: Path) -> None:
    """What was started last stops first, and no process is left."""
    changes: list[tuple[str, PartState]] = []
    supervisor.listen(lambda status: changes.append((status.name, status.state)))
    for name in ("broker", "engine", "sink"):
        supervisor.start([Sleeper(name, tmp_path / f"{name}.log")])
    pids = [status.pid for status in supervisor.statuses]
    supervisor.stop()
    stopped = [name for name, state in changes if state is PartState.STOPPED]
    assert stopped == ["sink", "engine", "broker"]
    assert not any(is_alive(pid) for pid in pids if pid is not None)


def test_a_part_that_cannot_start_stops_the_others(supervisor: Supervisor, tmp_path: Path) -> None:
    """A failed start is raised, and whatever was started before is stopped again."""
    broker = Sleeper("broker", tmp_path / "broker.log")
    supervisor.start([broker])
    with pytest.raises(PartStartError, match="exit code 7"):
        supervisor.start([Sleeper("sink", tmp_path / "sink.log", fails=True)])
    assert not broker.running


def test_the_health_page_says_which_part_is_down(supervisor: Supervisor, tmp_path: Path) -> None:
    """/readyz is ready when every part is; /metrics counts restarts; /healthz is about itself."""
    health = SupervisorHealth(supervisor, None)
    supervisor.listen(health.observe)
    url = health.start()
    try:
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert httpx.get(f"{url}/readyz").status_code == 503
        supervisor.start([Sleeper("sink", tmp_path / "sink.log")])
        assert httpx.get(f"{url}/readyz").json()["parts"] == {"sink": "ready"}
        assert 'approvaltrail_part_up{part="sink"} 1.0' in httpx.get(f"{url}/metrics").text
    finally:
        health.stop()


def test_a_program_that_ends_at_once_shows_the_end_of_its_log(tmp_path: Path) -> None:
    """The error of a program that did not become ready names its log and quotes its end."""
    part = ProgramPart(
        "sink",
        "this_module_does_not_exist",
        environment={},
        log=tmp_path / "sink.log",
        ready_url="http://127.0.0.1:9/readyz",
        address="http://127.0.0.1:9",
    )
    with pytest.raises(PartStartError, match="this_module_does_not_exist") as raised:
        part.start()
    assert str(tmp_path / "sink.log") in str(raised.value)
    assert not part.running


def test_a_part_under_restart_is_stopped_with_the_rest(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    """A stop in the middle of a restart leaves no process behind."""
    part = Sleeper("sink", tmp_path / "sink.log")
    seen: list[PartStatus] = []
    restarting = threading.Event()

    def listen(status: PartStatus) -> None:
        seen.append(status)
        if status.state is PartState.RESTARTING:
            restarting.set()

    supervisor.listen(listen)
    supervisor.start([part])
    assert part.pid is not None
    sigkill(part.pid)
    assert restarting.wait(10)
    supervisor.stop()
    assert not part.running
    assert seen[-1].state is PartState.STOPPED
