"""The README's table of commands, written from the commands' own help.

`python -m tests.support.commands_table` writes it anew between its markers in README.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import typer.main

from approvaltrail.local.cli.app import COMMANDS, gathered

README: Final = Path(__file__).parents[2] / "README.md"
BEGIN: Final = "<!-- commands: begin -->"
END: Final = "<!-- commands: end -->"


def table() -> str:
    """Return the whole table in Markdown, in the order of the help."""
    lines = ["| `approvaltrail …` | what it does |", "|---|---|"]
    commands: dict[str, Any] = typer.main.get_command(gathered([])).commands  # type: ignore[attr-defined]
    for name in COMMANDS:
        command = commands[name]
        inner = " ".join(f"`{one}`" for one in getattr(command, "commands", ()))
        words = " ".join(str(command.help).split("\n\n")[0].split())
        lines.append(f"| `{name}` | {words}{f' With {inner}.' if inner else ''} |")
    return "\n".join(lines)


def written() -> str:
    """Return the table as it stands in the README."""
    return README.read_text().split(BEGIN)[1].split(END)[0].strip()


if __name__ == "__main__":
    text = README.read_text()
    before, rest = text.split(BEGIN)
    README.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}")
