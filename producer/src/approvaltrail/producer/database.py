"""The journal's file: SQLite in WAL mode with `synchronous=FULL`, so that a commit is on disk.

`synchronous=FULL` makes SQLite call fdatasync once a commit (https://sqlite.org/pragma.html); the
weaker NORMAL does not, and would lose acknowledged events in a power cut.
"""

from __future__ import annotations

import dataclasses
import itertools
import sqlite3
import zlib
from typing import TYPE_CHECKING, Any, Final, Self

from approvaltrail.producer import state as state_table
from approvaltrail.producer.errors import JournalVersionError
from approvaltrail.producer.state import COLUMNS, JournalState, state_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from approvaltrail.producer.directory import JournalPath

Statement = tuple[str, tuple[Any, ...]]

APPLICATION_ID: Final = 0x4154_4A31
LAYOUT_VERSION: Final = 1
PAGE_BYTES: Final = 4_096
_BUSY_SECONDS: Final = 5.0
_LOG_LIMIT_BYTES: Final = 16 * 1024 * 1024
_TABLES: Final = (
    """CREATE TABLE events (
        sequence INTEGER PRIMARY KEY,
        recorded_at INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        key BLOB,
        body BLOB NOT NULL
    ) STRICT""",
    """CREATE TABLE seals (
        number INTEGER PRIMARY KEY,
        last_sequence INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT""",
    """CREATE TABLE lost (
        first INTEGER PRIMARY KEY,
        last INTEGER NOT NULL,
        reason TEXT NOT NULL
    ) STRICT""",
    state_table.table(),
)
# Statements of fixed sizes stay prepared; each run of one gives up and retakes the interpreter's
# lock, so that one statement for a small batch matters more to latency than its parsing.
_SINGLE: Final = 64
_SIZES: Final = (256, 128, *range(_SINGLE, 0, -1))
_INSERT: Final = {
    size: f"INSERT INTO events VALUES {','.join(['(?,?,?,?,?)'] * size)}"  # noqa: S608 - marks only
    for size in _SIZES
}
COLUMNS_PER_EVENT: Final = 5


def checksum(body: bytes, key: bytes | None) -> int:
    """Return the CRC-32 by which a reader knows a row that the disk has changed."""
    return zlib.crc32(key or b"", zlib.crc32(body))


class JournalDatabase:
    """One connection to a journal's file; used by one thread at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, path: JournalPath, *, limit_bytes: int, checkpoint_pages: int) -> Self:
        """Open for reading and writing; the caller holds the journal's lock.

        Raises:
            sqlite3.Error: the file cannot be used; the caller knows what that means.
            JournalVersionError: a newer version wrote it.
        """
        connection = sqlite3.connect(
            path.file,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=len(_SIZES) + 32,
        )
        try:
            database = cls(connection)
            database._configure(limit_bytes, checkpoint_pages)
            database._check_version(path)
        except BaseException:
            connection.close()
            raise
        return database

    @classmethod
    def open_to_read(cls, path: JournalPath) -> Self:
        """Open a second connection that only reads, for the relay or an inspection."""
        uri = f"{path.file.absolute().as_uri()}?mode=ro"
        return cls(
            sqlite3.connect(
                uri,
                uri=True,
                timeout=_BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
        )

    def _configure(self, limit_bytes: int, checkpoint_pages: int) -> None:
        execute = self._connection.execute
        execute(f"PRAGMA page_size = {PAGE_BYTES}")
        execute("PRAGMA journal_mode = WAL").fetchall()
        execute("PRAGMA synchronous = FULL")
        execute(f"PRAGMA wal_autocheckpoint = {checkpoint_pages}").fetchall()
        execute(f"PRAGMA journal_size_limit = {_LOG_LIMIT_BYTES}").fetchall()
        execute(f"PRAGMA max_page_count = {limit_bytes // PAGE_BYTES}").fetchall()

    def _check_version(self, path: JournalPath) -> None:
        version = self._one("PRAGMA user_version")
        if version > LAYOUT_VERSION:
            raise JournalVersionError(
                f"the journal {path.file} has layout {version}, this version knows "
                f"{LAYOUT_VERSION}: run the newer version, or drain the journal with it first"
            )

    @classmethod
    def open_to_build(cls, file: Path) -> Self:
        """Open a file that is filled once and then moved into place: it has no log beside it."""
        connection = sqlite3.connect(file, isolation_level=None)
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA synchronous = FULL")
        return cls(connection)

    def create(self, state: JournalState, extras: Iterable[Statement] = ()) -> None:
        """Make the tables and the state row of a new journal, and what else it begins with."""
        statements: list[Statement] = [(table, ()) for table in _TABLES]
        marks = ",".join("?" * len(COLUMNS))
        values = tuple(getattr(state, name) for name in COLUMNS)
        statements.append((f"INSERT INTO state VALUES (0,{marks})", values))  # noqa: S608 - ours
        statements.append((f"PRAGMA application_id = {APPLICATION_ID}", ()))
        statements.append((f"PRAGMA user_version = {LAYOUT_VERSION}", ()))
        self.run(itertools.chain(statements, extras))
        # the first transaction after the tables' makes the log exist, and be watched
        self.run([("UPDATE state SET probes = 1", ())])

    def is_new(self) -> bool:
        """Say whether the file holds no journal yet: its making was cut short, or not begun."""
        return self._one("PRAGMA application_id") == 0 and (
            self._one("SELECT count(*) FROM sqlite_master") == 0
        )

    def append(self, parameters: list[Any], count: int, extras: Iterable[Statement] = ()) -> None:
        """Insert events, and run what rides along, in one transaction that is then on disk."""
        execute = self._connection.execute
        if not extras and count in _INSERT:
            execute(_INSERT[count], parameters)
            return
        execute("BEGIN IMMEDIATE")
        try:
            self._insert(parameters, count)
            for sql, values in extras:
                execute(sql, values)
            execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            raise

    def _insert(self, parameters: list[Any], count: int) -> None:
        done = 0
        for size in _SIZES:
            while count - done >= size:
                first = done * COLUMNS_PER_EVENT
                values = parameters[first : first + size * COLUMNS_PER_EVENT]
                self._connection.execute(_INSERT[size], values)
                done += size

    def run(self, statements: Iterable[Statement]) -> None:
        """Run statements in one transaction that is then on disk."""
        self.append([], 0, statements)

    def quick_check(self) -> str | None:
        """Return the first damage that SQLite finds in the file, or None."""
        found = str(self._connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        return None if found == "ok" else found.splitlines()[-1]

    def holes(self, relayed_sequence: int, last_sequence: int) -> str | None:
        """Say whether numbers are missing that were not delivered yet, or between others."""
        count, first, last = self._connection.execute(
            "SELECT count(*), min(sequence), max(sequence) FROM events"
        ).fetchone()
        if not count:
            missing = last_sequence > relayed_sequence
        else:
            missing = count != last - first + 1 or first > relayed_sequence + 1
        return "events are missing that were not delivered yet" if missing else None

    def log_frames(self) -> int:
        """Return how many frames of the write-ahead log are whole and committed."""
        return int(self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1])

    def used_bytes(self) -> int:
        """Return what the file's pages hold, without the free ones."""
        return PAGE_BYTES * int(self._one("PRAGMA page_count") - self._one("PRAGMA freelist_count"))

    def state(self) -> JournalState:
        """Read the state, its floors raised to what the table of events holds."""
        state = self.state_row()
        sequence, recorded_at = self.last_event()
        return dataclasses.replace(
            state,
            last_sequence=max(state.last_sequence, sequence),
            last_recorded_at=max(state.last_recorded_at, recorded_at),
        )

    def state_row(self) -> JournalState:
        """Read the state as it is written."""
        columns = ",".join(COLUMNS)
        row = self._connection.execute(f"SELECT {columns} FROM state").fetchone()  # noqa: S608
        if row is None:
            raise sqlite3.DatabaseError("the journal has no state row")
        return state_of(row)

    def last_event(self) -> tuple[int, int]:
        """Return number and time of the last event in the table, or zeros."""
        row = self._connection.execute(
            "SELECT sequence, recorded_at FROM events ORDER BY sequence DESC LIMIT 1"
        ).fetchone()
        return (row[0], row[1]) if row else (0, 0)

    def first_sequence(self) -> int:
        """Return the number of the oldest event still in the table, or 0."""
        return int(self._one("SELECT coalesce(min(sequence), 0) FROM events"))

    def last_before(self, instant: int, after: int, last: int) -> int:
        """Return the last number of a range that was recorded before an instant (µs), or 0."""
        row = self._connection.execute(
            "SELECT coalesce(max(sequence), 0) FROM events"
            " WHERE sequence > ? AND sequence <= ? AND recorded_at < ?",
            (after, last, instant),
        ).fetchone()
        return int(row[0])

    def rows(self, after: int, last: int, limit: int) -> list[tuple[Any, ...]]:
        """Return (sequence, recorded_at, checksum, key, body) in order; never an open cursor.

        An open cursor would keep SQLite from reusing its log, which then grows without bound.
        """
        return self._connection.execute(
            "SELECT sequence, recorded_at, checksum, key, body FROM events"
            " WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?",
            (after, last, limit),
        ).fetchall()

    def bodies(self, after: int, chunk: int = 500) -> Iterator[list[bytes]]:
        """Return the events' bytes after a number, in lists."""
        while found := self.rows(after, 2**63 - 1, chunk):
            yield [row[4] for row in found]
            after = found[-1][0]

    def seals(self, after: int, last_sequence: int, limit: int) -> list[tuple[int, bytes]]:
        """Return (number, encoded seal) of seals after a number, ending at or below another."""
        return self._connection.execute(
            "SELECT number, body FROM seals WHERE number > ? AND last_sequence <= ?"
            " ORDER BY number LIMIT ?",
            (after, last_sequence, limit),
        ).fetchall()

    def unsent_seals(self, after: int) -> list[tuple[int, int, bytes]]:
        """Return (number, last sequence, encoded seal) of the seals after a number."""
        return self._connection.execute(
            "SELECT number, last_sequence, body FROM seals WHERE number > ? ORDER BY number",
            (after,),
        ).fetchall()

    def lost_ranges(self) -> list[tuple[int, int, str]]:
        """Return (first, last, reason) of the declared losses."""
        return self._connection.execute(
            "SELECT first, last, reason FROM lost ORDER BY first"
        ).fetchall()

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _one(self, sql: str) -> int:
        return int(self._connection.execute(sql).fetchone()[0])
