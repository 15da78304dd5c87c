"""What commands print: tables for people, one JSON object for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.cli.jsonable import dumps
from approvaltrail.local.cli.text import cell, safe
from approvaltrail.local.cli.times import iso
from approvaltrail.schemas.events import EventType
from approvaltrail.store.answers import Completeness, CompletenessState

_PIPED_WIDTH: Final = 240
EVENT_STYLES: Final = {
    EventType.ISSUED: "blue",
    EventType.ACCEPTED: "green",
    EventType.REFUSED: "yellow",
    EventType.REPLAYED: "red",
    EventType.COMPLETED: "green",
}
_STATE_LOOK: Final = {
    CompletenessState.COMPLETE: ("✔ complete", "green"),
    CompletenessState.NOT_YET: ("… not yet complete", "yellow"),
    CompletenessState.INCOMPLETE: ("✘ incomplete", "bold red"),
    CompletenessState.NOTHING_RECORDED: ("nothing recorded yet", "yellow"),
}


def console(*, stderr: bool = False) -> Console:
    """Return a console that reads no markup and colours only a terminal."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPED_WIDTH
    return Console(file=stream, markup=False, highlight=False, emoji=False, width=width)


def print_json(answer: Any) -> None:
    """Print one JSON object on one line."""
    sys.stdout.write(dumps(answer) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """Print a line of text from anywhere on stdout, safely."""
    console().print(Text(safe(text)), soft_wrap=True)


def note(text: str) -> None:
    """Print a line about the work, not of the answer, on stderr."""
    console(stderr=True).print(Text(safe(text)), soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[Text]]) -> None:
    """Print a table; cells come from `text.cell`."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        shown.add_row(*row)
    console().print(shown)


def completeness_line(completeness: Completeness) -> None:
    """Print whether the answer is all there is, and why not."""
    words, style = _STATE_LOOK[completeness.state]
    text = Text(words, style=style)
    if completeness.complete_until is not None:
        text.append(f" up to {iso(completeness.complete_until)}")
    expected = completeness.producers_expected
    heard = f", {completeness.producers_heard} producers heard from"
    text.append(heard + (f" of {expected} expected" if expected is not None else ""))
    text.append(f", {completeness.dead_letters} dead letters")
    console().print(text, soft_wrap=True)
    for reason in completeness.reasons:
        console().print(cell(f"  {reason}"), soft_wrap=True)


def demand_complete(completeness: Completeness, *, required: bool) -> None:
    """End with `INCOMPLETE` where completeness was required and is not proven."""
    if required and completeness.state is not CompletenessState.COMPLETE:
        raise typer.Exit(ExitCode.INCOMPLETE)
