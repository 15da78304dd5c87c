"""What callers choose cannot reach the terminal as anything but visible text."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from approvaltrail.local.cli.jsonable import dumps
from approvaltrail.local.cli.text import cell, middle, safe

HOSTILE = [
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x9b31m",
    "one\rtwo",
    "line\nbreak",
    "\u202egnp.exe",
    "zero\u200bwidth",
    "\u2028separator",
    "\ud800",
    "\x00",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_characters_that_act_are_shown_as_escapes(text: str) -> None:
    """No control, format, surrogate or separating character is printed as itself."""
    shown = safe(text)
    assert shown.isprintable()
    assert "\\" in shown


@given(st.text())
def test_whatever_is_shown_is_printable(text: str) -> None:
    """Every text becomes one printable line."""
    assert safe(text).isprintable()


def test_ordinary_text_stays_as_it_is() -> None:
    """Letters of any script are shown as they are."""
    assert safe("Prüfung 本番 prod-7") == "Prüfung 本番 prod-7"


def test_markup_in_a_cell_is_text() -> None:
    """Square brackets mean nothing to the table."""
    stream = io.StringIO()
    Console(file=stream, force_terminal=True, width=80).print(cell("[red]hi[/red] :boom:"))
    assert "[red]hi[/red] :boom:" in stream.getvalue()


@given(st.dictionaries(st.text(), st.text()))
def test_json_is_ascii_and_loses_nothing(values: dict[str, str]) -> None:
    """JSON for programs holds hostile characters as escapes alone, and reads back the same."""
    text = dumps(values)
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text) == values


def test_a_long_text_is_cut_in_the_middle() -> None:
    """Both ends of a nonce stay visible."""
    assert middle("abcdefghijklmnop", 9) == "abcd…mnop"
