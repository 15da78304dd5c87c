"""SQL as it comes over HTTP, and as chDB can run it.

A server reads an insert's rows from the request's body. chDB runs one statement and has no body, so
the rows go into a file and the statement names it: `input('S') … FORMAT F` becomes
`file('path', 'F', 'S')`, and a plain `INSERT … FORMAT F` reads `FROM INFILE 'path'`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_BLANK = rb"(?:\s|--[^\n]*(?:\n|$)|\#[ !][^\n]*(?:\n|$)|/\*.*?\*/)*"
_INSERT = re.compile(_BLANK + rb"INSERT\b", re.IGNORECASE | re.DOTALL)
_RETURNS_ROWS = re.compile(
    rb"(?:" + _BLANK + rb"\()*" + _BLANK + rb"(?:SELECT|WITH|FROM|SHOW|DESCRIBE|DESC|EXPLAIN|"
    rb"EXISTS|CHECK)\b",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN = re.compile(
    rb"""(?P<string>'(?:\\.|''|[^'\\])*')
      | `(?:\\.|``|[^`\\])*` | "(?:\\.|""|[^"\\])*"
      | (?P<heredoc>\$\w*\$).*?(?P=heredoc)
      | --[^\n]* | \#[ !][^\n]* | /\*.*?\*/
      | \bFORMAT\s+(?P<format>\w+)[ \t]*;?[ \t]*(?:\r?\n|$)?
      | (?P<values>\bVALUES\b) | (?P<select>\bSELECT\b) | (?P<settings>\bSETTINGS\b)
      | (?P<input>\binput\s*\()
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


class Kind(StrEnum):
    """What a statement does, as far as serving it differs."""

    INSERT = "insert"
    SELECT = "select"
    OTHER = "other"


def kind_of(sql: bytes) -> Kind:
    """Tell inserts and statements that return rows from the rest."""
    if _INSERT.match(sql):
        return Kind.INSERT
    return Kind.SELECT if _RETURNS_ROWS.match(sql) else Kind.OTHER


def named_format(sql: bytes) -> str | None:
    """Return the format that the statement itself asks for, None if it does not."""
    named = [match["format"] for match in _TOKEN.finditer(sql) if match["format"]]
    return named[-1].decode() if named else None


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertWithRows:
    """An insert whose rows follow its text."""

    head: bytes
    format: str
    rows: bytes
    input_span: tuple[int, int] | None
    """Where `input('…')` stands in head."""
    structure: bytes
    """The quoted structure inside of it."""
    settings_at: int | None
    """Where SETTINGS begins in head."""

    def reading_from(self, path: Path) -> bytes:
        """Return the statement that reads the rows from a file in the same format."""
        file_name = quoted(str(path))
        if self.input_span is not None:
            start, end = self.input_span
            source = b"file(%s, %s, %s)" % (file_name, quoted(self.format), self.structure)
            return self.head[:start] + source + self.head[end:]
        cut = len(self.head) if self.settings_at is None else self.settings_at
        before, after = self.head[:cut], self.head[cut:]
        form = self.format.encode()
        return b"%s FROM INFILE %s %s FORMAT %s" % (before, file_name, after, form)


def split_insert(sql: bytes, body: bytes) -> InsertWithRows | None:
    """Take an insert's text and rows apart; None when its rows are not data (VALUES, SELECT).

    `sql` came in the URL (then `body` holds rows) or is the body itself (then `body` is empty and
    the rows follow the text).
    """
    span: tuple[int, int] | None = None
    opened: int | None = None
    structure = b""
    settings_at: int | None = None
    selects = False
    for match in _TOKEN.finditer(sql):
        if match["values"]:
            return None
        if match["select"]:
            selects = True
        elif match["input"]:
            opened = match.start()
        elif match["string"] and opened is not None and span is None:
            structure = match["string"]
            span = (opened, sql.index(b")", match.end()) + 1)
        elif match["settings"]:
            settings_at = match.start()
        elif match["format"]:
            if selects and span is None:
                return None
            return InsertWithRows(
                head=sql[: match.start()],
                format=match["format"].decode(),
                rows=sql[match.end() :] + body,
                input_span=span,
                structure=structure,
                settings_at=settings_at,
            )
    return None


def quoted(text: str) -> bytes:
    """Return a SQL string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return b"'" + escaped.encode("utf-8", "surrogateescape") + b"'"
