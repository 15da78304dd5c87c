"""The two encodings of an export: a line of JSON an event, or a CSV with a header (RFC 4180)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from approvaltrail.dashboard.export.cells import cell_of, value_of
from approvaltrail.dashboard.export.rows import COLUMNS, Row


class Encoding(StrEnum):
    """How rows are written down."""

    NDJSON = "ndjson"
    CSV = "csv"

    @property
    def file_name(self) -> str:
        """The data file's name within an export."""
        return f"events.{self.value}"


def encoded(rows: Iterable[Row], encoding: Encoding) -> Iterator[bytes]:
    """Write rows, a piece at a time; UTF-8, without a byte order mark."""
    if encoding is Encoding.NDJSON:
        for row in rows:
            # in ASCII: what an attacker put into a text reaches no terminal
            yield json.dumps(row, ensure_ascii=True).encode("ascii") + b"\n"
        return
    yield _line(COLUMNS)
    for row in rows:
        yield _line(cell_of(row[name]) for name in COLUMNS)


def decoded(lines: Iterable[bytes], encoding: Encoding) -> Iterator[Row]:
    """Read rows back. Raises ValueError for a line that no export holds."""
    if encoding is Encoding.NDJSON:
        yield from map(_object, lines)
        return
    texts = (line.decode("utf-8") for line in lines)
    reader = csv.reader(texts, strict=True)
    try:
        header = next(reader, None)
        if header != list(COLUMNS):
            raise ValueError("the header is not that of an export")
        for cells in reader:
            if len(cells) != len(COLUMNS):
                raise ValueError("a row has too few or too many cells")
            pairs = zip(COLUMNS, cells, strict=True)
            yield {name: value_of(name, cell) for name, cell in pairs}
    except csv.Error as error:
        raise ValueError(f"not CSV: {error}") from None


def _object(line: bytes) -> Row:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError("a line is no object")  # noqa: TRY004 - a fault of the file, not of the call
    return row


def _line(cells: Iterable[str]) -> bytes:
    text = io.StringIO(newline="")
    write: Callable[[Iterable[str]], object] = csv.writer(text, lineterminator="\r\n").writerow
    write(cells)
    return text.getvalue().encode("utf-8")
