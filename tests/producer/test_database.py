"""The journal's file: transactions that hold together, and statements for every batch size."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from approvaltrail.producer.database import JournalDatabase, checksum
from approvaltrail.producer.directory import JournalPath
from approvaltrail.producer.state import JournalState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def database(tmp_path: Path) -> Iterator[JournalDatabase]:
    """Make a new journal's database."""
    path = JournalPath(file=tmp_path / "x.journal", producer_id="x")
    opened = JournalDatabase.open(path, limit_bytes=2**24, checkpoint_pages=250)
    opened.create(
        JournalState(producer_id="x", service="s", instance="i", machine="m", inode=1, created_at=1)
    )
    yield opened
    opened.close()


def parameters(first: int, count: int) -> list[Any]:
    """Return the insert's parameters of so many events."""
    flat: list[Any] = []
    for sequence in range(first, first + count):
        body = b"body %d" % sequence
        flat += (sequence, 1_000 + sequence, checksum(body, None), None, body)
    return flat


def test_every_batch_size(database: JournalDatabase) -> None:
    """Batches of any size are stored whole and in order, with and without what rides along."""
    first = 1
    for place, count in enumerate([1, 2, 33, 63, 64, 65, 127, 128, 129, 255, 257, 700]):
        extras = [("UPDATE state SET relayed_sequence = ?", (place,))] if place % 2 else []
        database.append(parameters(first, count), count, extras)
        first += count
    rows = database.rows(0, first, first)
    assert [row[0] for row in rows] == list(range(1, first))
    assert all(row[4] == b"body %d" % row[0] for row in rows)
    assert database.state().relayed_sequence == 11
    assert database.state().last_sequence == first - 1


def test_a_failed_transaction_leaves_nothing(database: JournalDatabase) -> None:
    """When what rides along fails, the events are not there either, and the next batch works."""
    database.append(parameters(1, 3), 3)
    with pytest.raises(sqlite3.Error):
        database.append(parameters(4, 2), 2, [("INSERT INTO nowhere VALUES (1)", ())])
    assert database.last_event()[0] == 3
    database.append(parameters(4, 70), 70)
    assert database.last_event()[0] == 73


def test_commits_are_synchronous(database: JournalDatabase, tmp_path: Path) -> None:
    """P-01: the journal runs in WAL mode with synchronous FULL, whatever SQLite's defaults are."""
    one = database._connection.execute("PRAGMA synchronous").fetchone()[0]
    mode = database._connection.execute("PRAGMA journal_mode").fetchone()[0]
    assert (one, mode) == (2, "wal")
    database.append(parameters(1, 1), 1)
    with contextlib.closing(sqlite3.connect(tmp_path / "x.journal")) as other:
        assert other.execute("SELECT count(*) FROM events").fetchone()[0] == 1
