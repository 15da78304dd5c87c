"""The two commands of the first ten minutes, as a user runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.support.processes import is_alive, wait_until
from tests.support.services import missing

from approvaltrail.local.broker import JarError, ensure_jars

pytestmark = [pytest.mark.whole_way, pytest.mark.timeout(180)]
COMMAND = [str(Path(sys.executable).with_name("approvaltrail"))]
FIGURES = [
    "issued",
    "accepted",
    "completed",
    "refused",
    "replayed",
    "recorded",
    "stored",
    "dead_lettered",
    "reuses_total",
    "reuses_linked",
    "gaps",
    "duplicates_sent",
    "canaries_planted",
    "canaries_found",
    "tokens_issued",
    "tokens_found",
    "seconds",
]


def descendants(pid: int) -> list[int]:
    """Return every process that this one started, and they, and so on."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            found += [child, *descendants(child)]
    return found


@pytest.fixture(autouse=True)
def jars() -> None:
    try:
        ensure_jars()
    except JarError as error:
        missing("the embedded Kafka", error)


def test_smoke_proves_the_whole_way(tmp_path: Path) -> None:
    """`smoke` ends with 0, and its figures show nothing lost, nothing twice, no token anywhere.

    Its folder has a name that is hard on Java, SQLite and the engine, and the locale has no letters
    but ASCII.
    """
    folder = tmp_path / "a, b=c # %41\\ é 日本 🚀 &y+z:'\""
    folder.mkdir()
    done = subprocess.run(
        [*COMMAND, "smoke", "--events", "400", "--seed", "11", "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "LC_ALL": "C"},
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found) == FIGURES
    kinds = ("issued", "accepted", "completed", "refused", "replayed")
    assert sum(found[kind] for kind in kinds) == found["stored"] >= 400
    assert found["recorded"] == found["stored"] + found["dead_lettered"]
    assert found["dead_lettered"] == 1
    assert found["reuses_linked"] == found["reuses_total"] > 0
    assert found["gaps"] == found["tokens_found"] == 0
    assert found["canaries_found"] == found["canaries_planted"] > 4
    assert found["duplicates_sent"] > 0
    assert "SIGKILL to the sink" in done.stderr
    assert list(folder.iterdir()) == [], "it leaves nothing behind"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_demo_shows_a_reuse_and_leaves_no_process(how: signal.Signals, tmp_path: Path) -> None:
    """`demo` names the dashboard once a reuse is stored; ended, even killed, it leaves nothing."""
    said = tmp_path / "said"
    with said.open("w") as out, (tmp_path / "told").open("w") as err:
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        demo = subprocess.Popen([*COMMAND, "demo"], stdout=out, stderr=err, env=environment)
    try:
        wait_until(
            lambda: "Open Replays" in said.read_text() or demo.poll() is not None,
            "the demo shows its first reuse",
            seconds=90,
        )
        assert demo.poll() is None, (tmp_path / "told").read_text()
        address = said.read_text().splitlines()[0]
        assert httpx.get(f"{address}/_stcore/health").text == "ok"
        family = descendants(demo.pid)
        assert len(family) >= 10  # broker, engine, sink, dashboard, server, and a shim for each
        demo.send_signal(how)
        demo.wait(30)
        wait_until(lambda: not any(map(is_alive, family)), "every process is gone", seconds=20)
        if how is signal.SIGINT:
            assert demo.returncode == 0
            assert list(tmp_path.glob("approvaltrail-demo-*")) == []
    finally:
        if demo.poll() is None:
            os.kill(demo.pid, signal.SIGTERM)
            demo.wait(30)
