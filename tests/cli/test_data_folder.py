"""One `up` a data folder, and every command finds it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.cli.where import find
from approvaltrail.local.data_folder import DataFolder, RunFile, temporary_folder
from approvaltrail.local.errors import AlreadyRunningError, DataFolderError

from .conftest import Ran

RUN = RunFile(
    pid=4711,
    started_at=datetime(2026, 3, 9, tzinfo=UTC),
    kafka_bootstrap_servers="127.0.0.1:1111",
    clickhouse_dsn="http://writer:w@127.0.0.1:2222/trail",
    clickhouse_reader_dsn="http://reader:r@127.0.0.1:2222/trail",
    dashboard_url="http://127.0.0.1:3333",
)


def test_a_second_up_names_the_first(tmp_path: Path, command: Callable[..., Ran]) -> None:
    """A second `up` ends with 5 and names the first one's process and dashboard."""
    folder = DataFolder(tmp_path)
    with folder.hold():
        folder.publish(RUN)
        ran = command("up", "--data", str(tmp_path))
    assert ran.code == ExitCode.ALREADY_RUNNING
    assert "4711" in ran.err
    assert "http://127.0.0.1:3333" in ran.err


def test_a_second_up_during_the_start_of_the_first_says_so(tmp_path: Path) -> None:
    """While the first has no addresses yet, the second is told to wait."""
    folder = DataFolder(tmp_path)
    with folder.hold(), pytest.raises(AlreadyRunningError, match="just starting"), folder.hold():
        pass


def test_the_run_file_is_for_its_owner_only(tmp_path: Path) -> None:
    """The run file holds passwords, so nobody else may read it; it goes when `up` ends."""
    folder = DataFolder(tmp_path)
    with folder.hold():
        folder.publish(RUN)
        assert stat.S_IMODE(folder.run_file.stat().st_mode) == 0o600
        assert folder.running() == RUN
    assert not folder.run_file.exists()


def test_a_run_file_of_a_killed_up_is_not_believed(tmp_path: Path) -> None:
    """However `up` ended, the kernel lets go of the folder, and its addresses are void."""
    code = (
        "import os, sys; from pathlib import Path; from tests.cli.test_data_folder import RUN;"
        "from approvaltrail.local.data_folder import DataFolder\n"
        "folder = DataFolder(Path(sys.argv[1]))\n"
        "with folder.hold():\n    folder.publish(RUN)\n    os._exit(9)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, check=False)
    folder = DataFolder(tmp_path)
    assert folder.run_file.exists()
    assert folder.running() is None
    with folder.hold():
        assert not folder.run_file.exists()


def test_a_folder_that_cannot_be_made_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    """A data folder below a file cannot be made: the message names it and --data."""
    (tmp_path / "file").touch()
    with pytest.raises(DataFolderError, match="--data"):
        DataFolder(tmp_path / "file" / "data").create()


def test_what_a_killed_run_left_is_cleared_away_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A temporary folder that nobody holds goes with the next run; a held or foreign one stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, held, young, foreign = (
        DataFolder(tmp_path / f"trial-{name}") for name in ("left", "held", "young", "foreign")
    )
    for folder in (left, held, young):
        folder.create()
        folder.lock_file.touch()
    foreign.root.mkdir()
    an_hour_ago = time.time() - 3600
    for folder in (left, held):
        os.utime(folder.lock_file, (an_hour_ago, an_hour_ago))
    with held.hold(), temporary_folder("trial-") as made:
        assert not left.root.exists()
        assert all(one.root.exists() for one in (held, young, foreign))
    assert not made.exists()


@pytest.mark.parametrize("name", ["a{1,2}", "what?", "all*"])
def test_a_folder_that_the_engine_would_misread_is_refused(tmp_path: Path, name: str) -> None:
    """The engine takes such a path for a pattern, and would keep its files elsewhere."""
    with pytest.raises(DataFolderError, match="takes for a pattern: give another with --data"):
        DataFolder(tmp_path / name).create()
    assert not (tmp_path / name).exists()


def test_addresses_come_from_flags_then_variables_then_the_running_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flag wins over a variable, a variable over a running `up`."""
    folder = DataFolder(tmp_path)
    monkeypatch.setenv("APPROVALTRAIL_DATA", str(tmp_path))
    with folder.hold():
        folder.publish(RUN)
        assert find().reader_dsn == RUN.clickhouse_reader_dsn
        assert find().kafka == RUN.kafka_bootstrap_servers
        monkeypatch.setenv("CLICKHOUSE_DSN", "http://env@127.0.0.1:1/x")
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "env:1")
        assert find().writer_dsn == "http://env@127.0.0.1:1/x"
        assert find().kafka == "env:1"
        assert find(kafka="flag:1").kafka == "flag:1"
        assert find(clickhouse="http://flag@h:1/x").reader_dsn == "http://flag@h:1/x"


def test_a_folder_named_by_hand_means_the_up_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--data` with a running `up` wins over variables: it is the more definite word."""
    monkeypatch.setenv("CLICKHOUSE_DSN", "http://env@127.0.0.1:1/x")
    folder = DataFolder(tmp_path)
    with folder.hold():
        folder.publish(RUN)
        assert find(data=tmp_path).writer_dsn == RUN.clickhouse_dsn
