"""Every way to fail has a documented exit code and a message that says what to do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from approvaltrail.consumers.errors import KafkaUnavailableError
from approvaltrail.local.broker import BrokerStartError
from approvaltrail.local.cli import app as commands
from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.cli.failures import code_of
from approvaltrail.local.engine import EngineStartError
from approvaltrail.local.errors import (
    AlreadyRunningError,
    DataFolderError,
    NotRunningError,
    StuckError,
)
from approvaltrail.producer.errors import JournalDirectoryError
from approvaltrail.schemas.errors import SettingsError
from approvaltrail.store.errors import InvalidDsnError, StoreUnavailableError

from .conftest import Ran

Command = Callable[..., Ran]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("x"), ExitCode.SETTINGS),
        (DataFolderError("x"), ExitCode.SETTINGS),
        (InvalidDsnError("x"), ExitCode.SETTINGS),
        (JournalDirectoryError("x"), ExitCode.SETTINGS),
        (StoreUnavailableError("x"), ExitCode.UNAVAILABLE),
        (KafkaUnavailableError("x"), ExitCode.UNAVAILABLE),
        (BrokerStartError("x"), ExitCode.UNAVAILABLE),
        (EngineStartError("x"), ExitCode.UNAVAILABLE),
        (NotRunningError("x"), ExitCode.UNAVAILABLE),
        (AlreadyRunningError("x"), ExitCode.ALREADY_RUNNING),
        (ZeroDivisionError("x"), ExitCode.INTERNAL),
    ],
)
def test_each_kind_of_error_has_its_code(error: Exception, code: ExitCode) -> None:
    """The nearest known class of an error decides the exit code."""
    assert code_of(error) is code


def test_the_help_names_every_code(command: Command) -> None:
    """`approvaltrail --help` documents the exit codes."""
    words = " ".join(command("--help").out.split())
    for code in ExitCode:
        assert f"{code.value} {code.name.lower().replace('_', ' ')}" in words


def test_an_unknown_command_is_a_wrong_usage(command: Command) -> None:
    """A command that does not exist ends with 2."""
    assert command("replay").code == ExitCode.USAGE


def test_a_time_that_is_none_is_a_wrong_usage(command: Command) -> None:
    """A wrong span ends with 2 and shows a right one."""
    ran = command("replays", "--last", "yesterday")
    assert ran.code == ExitCode.USAGE
    assert "24h" in ran.err


def test_a_setting_without_usable_value_is_named(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong setting ends with 3 and is called by its name; its value is not repeated."""
    monkeypatch.setenv("APPROVALTRAIL_BROKER_PORT", "seventy-thousand")
    ran = command("replays")
    assert ran.code == ExitCode.SETTINGS
    assert "APPROVALTRAIL_BROKER_PORT" in ran.err
    assert "seventy" not in ran.err


def test_without_any_address_the_message_says_how_to_give_one(command: Command) -> None:
    """No flag, no variable, no running `up`: the command ends with 4 and names all three."""
    ran = command("trail", "k3JxP9Qw")
    assert ran.code == ExitCode.UNAVAILABLE
    for way in ("approvaltrail up", "--data", "CLICKHOUSE_DSN"):
        assert way in ran.err


def test_an_unreachable_store_never_shows_its_password(command: Command) -> None:
    """A store that does not answer ends with 4, without the DSN's password."""
    ran = command("replays", "--clickhouse", "http://ana:hunter2hunter2@127.0.0.1:9/trail")
    assert ran.code == ExitCode.UNAVAILABLE
    assert "hunter2" not in ran.out + ran.err


def test_a_fault_of_the_program_says_where_and_not_what(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of an unforeseen error may hold a secret: it is not shown unless asked for."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret text")

    monkeypatch.setattr(commands, "app", fail)
    ran = command("version")
    assert ran.code == ExitCode.INTERNAL
    assert "ZeroDivisionError" in ran.err
    assert "secret text" not in ran.err


def test_the_error_of_one_task_of_a_group_is_that_error(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stops a group of tasks is told as itself, not as a fault of the program."""

    def fail(*_: object, **__: object) -> None:
        raise ExceptionGroup("tasks", [ExceptionGroup("inner", [StuckError("nothing arrives")])])

    monkeypatch.setattr(commands, "app", fail)
    ran = command("version")
    assert ran.code == ExitCode.UNAVAILABLE
    assert ran.err == "error: nothing arrives\n"


@pytest.mark.parametrize("arguments", ["version", "version --json", "--help", "version --help"])
def test_an_output_without_room_is_no_fault_of_the_program(arguments: str) -> None:
    """A full disk behind the output, or none at all, ends with 74 and one line that says so."""
    line = [str(Path(sys.executable).with_name("approvaltrail")), *arguments.split()]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == ExitCode.OUTPUT
    assert "cannot be written to the output (No space left on device)" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    closed = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *line], stderr=subprocess.PIPE, text=True, check=False
    )
    assert closed.returncode == ExitCode.OUTPUT
    assert "cannot be written to the output" in closed.stderr


def test_ctrl_c_ends_with_130(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that was interrupted says so by its exit code."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "app", interrupt)
    assert command("smoke").code == ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    "line",
    [
        ("trail", ""),
        ("trail", "n" * 65),
        ("trail", "\udcff\udcfe"),
        ("events", "--text", "\udcff"),
        ("events", "--since", "0001-01-01T00:00:00Z"),
        ("replays", "--since", "9999-12-31T23:59:59Z", "--until", "9999-12-31T23:59:59Z"),
    ],
)
def test_what_no_store_could_look_for_is_a_usage_error(
    command: Callable[..., Ran], line: tuple[str, ...]
) -> None:
    """Empty, overlong and unreadable texts, and times outside the calendar, end with 2."""
    ran = command(*line)
    assert (ran.code, ran.out) == (ExitCode.USAGE, ""), ran
