"""Connections to chDB: one for each statement that runs, kept for the next.

A chDB connection runs one statement at a time: readers that shared one with the sink waited half a
second in the 99th percentile, 18 ms with their own. A connection remembers its database, settings
and temporary tables, so settings are compared and set back, and HTTP sessions get one of their own.
`readonly` cannot be taken back, so reading connections live in a pool of their own.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from typing import TYPE_CHECKING, Any

import chdb

from approvaltrail.local.engine import codes
from approvaltrail.local.engine.errors import QueryError
from approvaltrail.local.engine.statement import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

READ_ONLY = "2"
"""ClickHouse's `readonly`: reads and changes of settings, nothing else."""


class Handle:
    """One chDB connection and what it remembers."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self._connection = chdb.connect(str(path))
        self._settings: dict[str, str] = {}
        self._database = "default"
        self._read_only = read_only
        if read_only:
            self.run(b"SET readonly = " + READ_ONLY.encode())

    @property
    def spent(self) -> bool:
        """Whether it was made read-only by a request and must not serve others."""
        return "readonly" in self._settings

    def run(
        self, sql: bytes, output_format: str = "TabSeparated", parameters: Mapping[str, str] = {}
    ) -> Any:
        """Run one statement; raises QueryError."""
        text = sql.decode("utf-8", "surrogateescape")
        try:
            return self._connection.query(text, output_format, params=dict(parameters))
        except Exception as error:  # noqa: BLE001 - chDB raises RuntimeError and bare Exceptions
            raise _query_error(str(error)) from None  # the foreign error quotes rows

    def adopt(self, database: str, settings: Mapping[str, str]) -> None:
        """Bring the connection to the request's database and settings."""
        if database != self._database:
            self.run(b"USE `" + database.replace("\\", "\\\\").replace("`", "\\`").encode() + b"`")
            self._database = database
        for name in [name for name in self._settings if name not in settings]:
            self.run(f"SET {name} = DEFAULT".encode())
            del self._settings[name]
        # readonly comes last: behind it nothing can be set.
        for name in sorted(settings, key=lambda name: name == "readonly"):
            self._set(name, settings[name])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _set(self, name: str, value: str) -> None:
        if not re.fullmatch(r"\w+", name):
            raise QueryError.of(codes.UNKNOWN_SETTING, "Unknown setting.")
        if self._settings.get(name) == value or (
            name == "readonly" and self._read_only and value == READ_ONLY
        ):
            return
        self.run(b"SET %s = %s" % (name.encode(), quoted(value)))
        self._settings[name] = value


def _query_error(text: str) -> QueryError:
    text = text[max(text.find("Code: "), 0) :].strip()
    match = re.match(r"Code: (\d+)", text)
    if match:
        return QueryError(int(match[1]), text)
    return QueryError(
        codes.UNKNOWN_EXCEPTION,
        f"Code: {codes.UNKNOWN_EXCEPTION}. DB::Exception: {text} (UNKNOWN_EXCEPTION)",
    )


class _Session:
    def __init__(self, handle: Handle, timeout_seconds: float) -> None:
        self.handle = handle
        self.timeout_seconds = timeout_seconds
        self.used_at = time.monotonic()
        self.busy = True


class HandlePool:
    """Handles for statements outside of sessions, and one for each session.

    Bounded: past `busy_limit` statements at once a request is refused with code 202 (ClickHouse's
    answer to the same), past `session_limit` the session idle for longest ends, and no more than
    `idle_limit` handles wait for work.
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool,
        busy_limit: int = 32,
        session_limit: int = 64,
        idle_limit: int = 8,
    ) -> None:
        self._path = path
        self._read_only = read_only
        self._busy_limit = busy_limit
        self._session_limit = session_limit
        self._idle_limit = idle_limit
        self._guard = threading.Lock()
        self._idle: list[Handle] = []
        self._sessions: dict[str, _Session] = {}
        self._busy = 0

    @property
    def busy(self) -> int:
        """Statements that run now."""
        return self._busy

    @contextlib.contextmanager
    def borrow(self, session_id: str | None, timeout_seconds: float) -> Iterator[Handle]:
        """Lend a handle; raises QueryError 202 (too many) or 373 (session locked)."""
        self._enter()
        try:
            if session_id is None:
                handle = self._take_idle()
                try:
                    yield handle
                finally:
                    self._give_back(handle)
            else:
                session = self._take_session(session_id, timeout_seconds)
                try:
                    yield session.handle
                finally:
                    self._give_back_session(session_id, session)
        finally:
            with self._guard:
                self._busy -= 1

    def end_session(self, session_id: str) -> None:
        """Close a session that its client has finished with."""
        with self._guard:
            session = self._sessions.get(session_id)
            if session is None or session.busy:
                return
            del self._sessions[session_id]
        session.handle.close()

    def close(self) -> None:
        """Close every handle that is not at work."""
        with self._guard:
            sessions = [session for session in self._sessions.values() if not session.busy]
            handles = [*self._idle, *(session.handle for session in sessions)]
            self._idle.clear()
            self._sessions.clear()
        for handle in handles:
            handle.close()

    def _enter(self) -> None:
        with self._guard:
            if self._busy >= self._busy_limit:
                raise QueryError.of(
                    codes.TOO_MANY_SIMULTANEOUS_QUERIES,
                    f"Too many simultaneous queries. Maximum: {self._busy_limit}.",
                )
            self._busy += 1

    def _take_idle(self) -> Handle:
        with self._guard:
            handle = self._idle.pop() if self._idle else None
        return handle or Handle(self._path, read_only=self._read_only)

    def _give_back(self, handle: Handle) -> None:
        with self._guard:
            keep = not handle.spent and len(self._idle) < self._idle_limit
            if keep:
                self._idle.append(handle)
        if not keep:
            handle.close()

    def _take_session(self, session_id: str, timeout_seconds: float) -> _Session:
        with self._guard:
            ended = self._ended_sessions(keep=session_id)
            session = self._sessions.get(session_id)
            if session is not None and session.busy:
                raise QueryError.of(
                    codes.SESSION_IS_LOCKED,
                    f"Session {session_id} is locked by a concurrent client.",
                )
            if session is None:
                handle = Handle(self._path, read_only=self._read_only)
                session = self._sessions[session_id] = _Session(handle, timeout_seconds)
            session.busy = True
            session.timeout_seconds = timeout_seconds
        for old in ended:
            old.handle.close()
        return session

    def _ended_sessions(self, keep: str) -> list[_Session]:
        """Take out the sessions past their time, and the oldest idle one when there are too many.

        The caller holds the guard.
        """
        now = time.monotonic()
        idle = {key: one for key, one in self._sessions.items() if not one.busy and key != keep}
        ended = [key for key, one in idle.items() if now - one.used_at > one.timeout_seconds]
        if len(self._sessions) - len(ended) >= self._session_limit:
            ended += sorted(set(idle) - set(ended), key=lambda key: idle[key].used_at)[:1]
        return [self._sessions.pop(key) for key in ended]

    def _give_back_session(self, session_id: str, session: _Session) -> None:
        with self._guard:
            session.used_at = time.monotonic()
            session.busy = False
            if not session.handle.spent:
                return
            self._sessions.pop(session_id, None)
        session.handle.close()
