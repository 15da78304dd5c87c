"""CSV cells that no spreadsheet takes for formulas, and back again without loss.

A cell that begins (after blanks) with = + - @ tab, CR or LF, or their full-width forms, is run by
spreadsheets (OWASP, "CSV Injection"). Such a cell gets an apostrophe in front, which spreadsheets
hide. To stay reversible a text that begins with an apostrophe gets one too, and an empty text is an
apostrophe alone, since an empty cell means that there is no value. So: to read a cell, take off one
leading apostrophe if there is one.
"""

from __future__ import annotations

import json
from typing import Any, Final

from approvaltrail.dashboard.export.rows import BOOLEANS, LISTS, NUMBERS

_MARK: Final = "'"
_RUN: Final = tuple("=+-@\t\r\n＝＋－＠" + _MARK)  # full-width forms are run by some


def neutral(text: str) -> str:
    """Return a text such that it is data in every spreadsheet."""
    begins = text.startswith(_RUN) or text.lstrip().startswith(_RUN)
    return _MARK + text if begins or not text else text


def original(cell: str) -> str:
    """Return the text that a cell was made from."""
    return cell.removeprefix(_MARK)


def cell_of(value: Any) -> str:
    """Write one value of a row."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return neutral(json.dumps(value, ensure_ascii=True, separators=(",", ":")))
        case _:
            return neutral(str(value))


def value_of(name: str, cell: str) -> Any:
    """Read one value of a row. Raises ValueError for what was never written."""
    if cell == "":
        return None
    text = original(cell)
    if name in BOOLEANS:
        return {"true": True, "false": False}.get(text, text)
    if name in NUMBERS:
        return int(text)
    return json.loads(text) if name in LISTS else text
