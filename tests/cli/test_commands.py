"""The commands are what their help and the README say."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.commands_table import table, written

from approvaltrail.local.cli.app import COMMANDS

from .conftest import Ran


def test_the_readme_lists_every_command() -> None:
    """The README's table is the one that `python -m tests.support.commands_table` writes."""
    assert written() == table()


def test_no_short_help_is_cut(command: Callable[..., Ran]) -> None:
    """Each command's first sentence fits beside its name at 80 columns."""
    listed = command("--help").out.split("Commands:")[1].split("Exit codes")[0].strip().splitlines()
    assert {line.split()[0] for line in listed if line.strip()} == set(COMMANDS)
    assert not [line for line in listed if line.rstrip().endswith("...")]


@pytest.mark.parametrize("line", [("replays",), ("export", "trail"), ("ledger", "reconcile")])
def test_a_command_loads_no_more_than_it_needs(line: tuple[str, ...]) -> None:
    """An asking command starts without the pages, the MCP server or a broker's client."""
    code = (
        "import sys; from approvaltrail.local.cli.entry import run; run(sys.argv[1:])\n"
        "heavy = {'streamlit', 'mcp', 'pandas', 'altair'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *line, "--help"], capture_output=True, check=False, text=True
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ex", "export"),
        ("export ve", "verify"),
        ("replays --la", "--label"),
        ("ledger mi", "migrate"),
    ],
)
def test_a_shell_completes_commands_and_options(typed: str, offered: str) -> None:
    """What `--install-completion` sets up asks the program, which answers for bash and zsh."""
    line = f"approvaltrail {typed}"
    bash = {"COMP_WORDS": line.replace(" ", "\n"), "COMP_CWORD": str(line.count(" "))}
    zsh = {"_TYPER_COMPLETE_ARGS": line}
    for shell, asked in (("bash", bash), ("zsh", zsh)):
        answer = subprocess.run(
            [Path(sys.executable).with_name("approvaltrail")],
            env={**os.environ, "_APPROVALTRAIL_COMPLETE": f"complete_{shell}", **asked},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert offered in answer, shell
