"""Opens the token store's file: made lazily, private, durable, of a known version."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from approvaltrail.gate.errors import (
    LedgerError,
    LedgerFullError,
    TokenStoreBusyError,
    TokenStoreError,
    TokenStoreReadOnlyError,
)
from approvaltrail.schemas.encoding import instant_of, microseconds

_VERSION: Final = 2
_APPLICATION_ID: Final = 0x41547472
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_PAUSE_SECONDS: Final = 0.01
_SCHEMA: Final = (
    f"PRAGMA user_version = {_VERSION}",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    """
    CREATE TABLE IF NOT EXISTS store (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        created_at INTEGER NOT NULL,
        pruned_until INTEGER NOT NULL DEFAULT 0
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS spent_nonces (
        nonce TEXT NOT NULL COLLATE BINARY PRIMARY KEY,
        claim_id TEXT NOT NULL,
        spent_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        tool TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS spent_nonces_by_expiry ON spent_nonces (expires_at)",
)
"""Times are whole microseconds since the Unix epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStore:
    """An open file, and which file it was: a path may come to name another."""

    connection: sqlite3.Connection
    created_at: datetime
    identity: tuple[int, int]


def open_store(
    path: Path,
    now: datetime,
    busy_seconds: float,
    connection_class: type[sqlite3.Connection],
) -> OpenStore:
    """Open the store, making folder, file and tables where there are none.

    Raises:
        LedgerFullError: there is no space for it.
        TokenStoreError: it cannot be opened, or is no token store of this version.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make_private(path)
        identity = _identity(path)
    except OSError as error:
        raise TokenStoreError(
            f"the token store {path} cannot be opened ({type(error).__name__}); check the folder's "
            "permissions, or set APPROVALTRAIL_TOKEN_STORE to a writable path"
        ) from error
    try:
        connection = sqlite3.connect(
            path,
            timeout=busy_seconds,
            isolation_level=None,
            check_same_thread=False,
            factory=connection_class,
        )
    except sqlite3.Error as error:
        raise meaning(error, path) from error
    try:
        created_at = _set_up_patiently(connection, path, now, busy_seconds)
        if _identity(path) != identity:
            raise TokenStoreError(f"the token store {path} was replaced while it opened; retry")
    except (sqlite3.Error, OSError) as error:
        connection.close()
        raise meaning(error, path) from error
    except LedgerError:
        connection.close()
        raise
    return OpenStore(connection=connection, created_at=created_at, identity=identity)


def replaced(path: Path, store: OpenStore) -> bool:
    """Say whether the path no longer names the file that is open."""
    try:
        return _identity(path) != store.identity
    except OSError:
        return True


def check_unmoved(path: Path, store: OpenStore) -> None:
    """Return if the answer just given came from the file that the path names.

    Raises:
        TokenStoreError: another file stands there now, and others claim in that one.
    """
    if replaced(path, store):
        raise TokenStoreError(f"the token store {path} was replaced during the call; retry")


def meaning(error: sqlite3.Error | OSError, path: Path) -> LedgerError:
    """Map a foreign error to ours: one that says what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if code == sqlite3.SQLITE_FULL:
        return LedgerFullError(f"the disk under the token store {path} is full; free some space")
    hint = _HINTS.get(code, "check the file and its folder; deleting it is safe but for waiting: ")
    if code not in _HINTS:
        hint += "tokens issued before are then refused"
    kind = _KINDS.get(code, TokenStoreError)
    return kind(f"the token store {path} cannot be used ({name}); {hint}")


_KINDS: Final = {
    sqlite3.SQLITE_BUSY: TokenStoreBusyError,
    sqlite3.SQLITE_LOCKED: TokenStoreBusyError,
    sqlite3.SQLITE_READONLY: TokenStoreReadOnlyError,
}


_HINTS: Final = {
    sqlite3.SQLITE_BUSY: "another process held it for too long; retry shortly",
    sqlite3.SQLITE_LOCKED: "another process held it for too long; retry shortly",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "make the file and its folder readable and writable",
    sqlite3.SQLITE_NOTADB: "it is no token store; point APPROVALTRAIL_TOKEN_STORE elsewhere",
}


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _make_private(path: Path) -> None:
    """Make an empty file for its owner alone, where there is none.

    An existing file is left unopened: closing a second descriptor of a database would drop the
    locks that this process holds on it.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _set_up_patiently(
    connection: sqlite3.Connection, path: Path, now: datetime, busy_seconds: float
) -> datetime:
    """Set up, waiting for others that do so: changing the journal mode has no wait of its own."""
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            return _set_up(connection, path, now)
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF in _BUSY
            if not busy or time.monotonic() >= deadline:
                raise
        time.sleep(_PAUSE_SECONDS)


def _set_up(connection: sqlite3.Connection, path: Path, now: datetime) -> datetime:
    ours = _is_ours(connection, path)
    if connection.execute("PRAGMA journal_mode").fetchall()[0][0] != "wal":
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA synchronous = FULL")  # a claim survives a loss of power
    return _created_at(connection) if ours else _create(connection, now)


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    version = connection.execute("PRAGMA user_version").fetchall()[0][0]
    application = connection.execute("PRAGMA application_id").fetchall()[0][0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()[0][0]
    if tables == 0:
        return False
    if application != _APPLICATION_ID:
        raise TokenStoreError(
            f"{path} is a database of something else; point APPROVALTRAIL_TOKEN_STORE elsewhere"
        )
    if version != _VERSION:
        raise TokenStoreError(
            f"the token store {path} has version {version}, this release reads {_VERSION}; "
            "use the release that wrote it, or move the file away"
        )
    return True


def _create(connection: sqlite3.Connection, now: datetime) -> datetime:
    """Make the tables, unless another process was faster; its time of creation then holds."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute(
            "INSERT INTO store (one, created_at) VALUES (1, ?) ON CONFLICT DO NOTHING",
            (microseconds(now),),
        )
        created_at = _created_at(connection)
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.rollback()
        raise
    return created_at


def _created_at(connection: sqlite3.Connection) -> datetime:
    rows = connection.execute("SELECT created_at FROM store").fetchall()
    return instant_of(rows[0][0])
