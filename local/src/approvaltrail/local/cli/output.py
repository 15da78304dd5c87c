"""What commands print: tables for people, one JSON object for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
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

_PIPED_WIDTH: Final = 10_000
"""A row is a line where no terminal bounds it, so that other programs can take it apart."""
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
    """Print a table; cells come from `text.cell`. Too wide a row becomes a few named lines."""
    held = [tuple(row) for row in rows]
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in held:
        shown.add_row(*row)
    out = console()
    if out.measure(shown, options=out.options.update(max_width=_PIPED_WIDTH)).maximum <= out.width:
        out.print(shown)
        return
    for row in held:
        for line in _stacked(columns, row, out.width):
            out.print(line, overflow="fold")


def _stacked(columns: Sequence[str], row: Sequence[Text], width: int) -> Iterator[Text]:
    """Give a row as lines: the first cell leads, the others follow by name, as many as fit."""
    line = row[0].copy()
    for name, one in zip(columns[1:], row[1:], strict=True):
        if not one.plain:
            continue
        piece = Text(f"{name} " if name else "", style="bright_black").append_text(one)
        if line.cell_len + 2 + piece.cell_len > width and line.plain.strip():
            yield line
            line = Text()
        line.append("  ").append_text(piece)
    yield line


def completeness_line(completeness: Completeness) -> None:
    """Print whether the answer is all there is, and why not."""
    words, style = _STATE_LOOK[completeness.state]
    text = Text(words, style=style)
    if completeness.complete_until is not None:
        text.append(f" up to {iso(completeness.complete_until)}")
    expected = completeness.producers_expected
    heard = f", {_counted(completeness.producers_heard, 'producer')} heard from"
    text.append(heard + (f" of {expected} expected" if expected is not None else ""))
    text.append(f", {_counted(completeness.dead_letters, 'dead letter')}")
    console().print(text, soft_wrap=True)
    for reason in completeness.reasons:
        console().print(cell(f"  {reason}"), soft_wrap=True)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def demand_complete(completeness: Completeness, *, required: bool) -> None:
    """End with `INCOMPLETE` where completeness was required and is not proven."""
    if required and completeness.state is not CompletenessState.COMPLETE:
        raise typer.Exit(ExitCode.INCOMPLETE)
