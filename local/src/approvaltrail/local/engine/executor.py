"""One request's statement, from text to answer."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from approvaltrail.local.engine import codes
from approvaltrail.local.engine.errors import QueryError
from approvaltrail.local.engine.handles import READ_ONLY, Handle, HandlePool
from approvaltrail.local.engine.reader_guard import ReaderGuard, check_database
from approvaltrail.local.engine.statement import Kind, kind_of, named_format, quoted, split_insert

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from approvaltrail.local.engine.folder import EngineFolder

_DATABASE_OF_READERS = "system"
_DATABASE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One request, decoded."""

    sql: bytes
    body: bytes
    """Rows that came beside the SQL; empty when the SQL came as the body."""
    query_id: str
    output_format: str
    database: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    session_id: str | None = None
    session_timeout_seconds: float = 60.0
    close_session: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A statement's result in full."""

    kind: Kind
    body: bytes
    output_format: str | None
    read_rows: int = 0
    read_bytes: int = 0
    written_rows: int = 0
    written_bytes: int = 0
    elapsed_seconds: float = 0.0


class Executor:
    """chDB with two pools of handles: the owner's, and one that can only read."""

    def __init__(self, folder: EngineFolder) -> None:
        self._folder = folder
        self._owners = HandlePool(folder.store, read_only=False)
        self._readers = HandlePool(folder.store, read_only=True)
        self._running: set[str] = set()
        self._running_guard = threading.Lock()
        with self._readers.borrow(None, 0) as handle:
            self.version, self.timezone = _row(handle, b"SELECT version(), timezone()")
            functions = _column(handle, b"SELECT name FROM system.table_functions")
            settings = _column(handle, b"SELECT name FROM system.settings")
        self._guard = ReaderGuard(functions, settings)
        self._canonical = functools.lru_cache(maxsize=128)(self._print_canonical)

    @property
    def busy(self) -> int:
        """Statements that run now."""
        return self._owners.busy + self._readers.busy

    def check(self) -> None:
        """Run SELECT 1; raises QueryError when the engine cannot."""
        with self._readers.borrow(None, 0) as handle:
            handle.run(b"SELECT 1")

    def run(self, query: Query, *, reader: bool, read_only: bool) -> Answer:
        """Run a statement. `reader` checks it against what that user may, `read_only` is both's."""
        if reader:
            check_database(query.database or _DATABASE_OF_READERS)
            self._guard.check(self._canonical(query.sql), query.parameters, query.settings)
        # The owner's own `readonly` would spoil a handle; a session has to bear it.
        asked = query.session_id is None and query.settings.get("readonly") == READ_ONLY
        pool = self._readers if reader or read_only or asked else self._owners
        # Sessions are a user's own: a reader must not meet the owner's temporary tables.
        session_id = f"{reader}:{query.session_id}" if query.session_id else None
        default = _DATABASE_OF_READERS if reader else _DATABASE
        with self._only_one(query.query_id):
            with pool.borrow(session_id, query.session_timeout_seconds) as handle:
                handle.adopt(query.database or default, query.settings)
                answer = self._run_on(handle, query)
            if query.close_session and session_id:
                pool.end_session(session_id)
        return answer

    def close(self) -> None:
        """Close every handle that is not at work."""
        self._readers.close()
        self._owners.close()

    def _run_on(self, handle: Handle, query: Query) -> Answer:
        kind = kind_of(query.sql)
        insert = split_insert(query.sql, query.body) if kind is Kind.INSERT else None
        if insert is None:
            sql = query.sql + b"\n" + query.body if query.body else query.sql
            return _answer(handle.run(sql, query.output_format, query.parameters), kind, query, sql)
        if not insert.rows:
            return Answer(kind=kind, body=b"", output_format=None)
        with self._file_of(insert.rows) as path:
            sql = insert.reading_from(path)
            return _answer(handle.run(sql, query.output_format, query.parameters), kind, query, sql)

    @contextlib.contextmanager
    def _file_of(self, rows: bytes) -> Iterator[Path]:
        descriptor, name = tempfile.mkstemp(dir=self._folder.incoming)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(rows)
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _only_one(self, query_id: str) -> Iterator[None]:
        with self._running_guard:
            if query_id in self._running:
                raise QueryError.of(
                    codes.QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING,
                    f"Query with id = {query_id} is already running.",
                )
            self._running.add(query_id)
        try:
            yield
        finally:
            with self._running_guard:
                self._running.discard(query_id)

    def _print_canonical(self, sql: bytes) -> str:
        text = sql.decode("utf-8", "surrogateescape").strip().removesuffix(";")
        with self._readers.borrow(None, 0) as handle:
            printed = handle.run(
                b"SELECT formatQuerySingleLine(" + quoted(text) + b")", "RawBLOB"
            ).bytes()
        return str(printed.decode("utf-8", "replace"))


def _row(handle: Handle, sql: bytes) -> list[str]:
    text: str = handle.run(sql).bytes().decode()
    return text.strip().split("\t")


def _column(handle: Handle, sql: bytes) -> list[str]:
    text: str = handle.run(sql).bytes().decode()
    return text.split()


def _answer(result: Any, kind: Kind, query: Query, sql: bytes) -> Answer:
    rows, size = int(result.rows_read()), int(result.bytes_read())
    if kind is Kind.INSERT and not rows:  # a SELECT FROM file() is counted elsewhere
        rows = int(result.storage_rows_read())
    wrote = kind is Kind.INSERT
    return Answer(
        kind=kind,
        body=result.bytes() or b"",
        output_format=(named_format(sql) or query.output_format) if kind is Kind.SELECT else None,
        read_rows=rows,
        read_bytes=size,
        written_rows=rows if wrote else 0,
        written_bytes=size if wrote else 0,
        elapsed_seconds=float(result.elapsed()),
    )
