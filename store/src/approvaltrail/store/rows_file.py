"""Rows for an engine within this process, which has no request body to read them from."""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_INPUT: Final = re.compile(r"\binput\((?P<structure>'(?:\\.|[^'\\])*')\)")
_FORMAT: Final = re.compile(r"\s+FORMAT\s+(?P<format>\w+)\s*$")


@contextmanager
def rows_file(sql: str, data: bytes) -> Iterator[str]:
    """Put the rows into a private file and yield the statement that reads them from there.

    `input('S') … FORMAT F` becomes `file('path', 'F', 'S') …`.
    """
    source, tail = _INPUT.search(sql), _FORMAT.search(sql)
    if source is None or tail is None:
        raise ValueError("a statement with rows reads input('…') and ends in FORMAT …")
    with tempfile.TemporaryDirectory(prefix="approvaltrail-") as folder:
        path = Path(folder) / "rows"
        path.write_bytes(data)
        table = f"file('{path}', '{tail['format']}', {source['structure']})"
        yield sql[: source.start()] + table + sql[source.end() : tail.start()]
