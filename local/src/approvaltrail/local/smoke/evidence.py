"""What each hop holds at the end of a run, gathered for the checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from approvaltrail.producer.database import JournalDatabase
from approvaltrail.producer.directory import JournalDirectory
from approvaltrail.schemas.events import EventType
from approvaltrail.store.answers import Completeness, Reuse, ReuseFilter, TenantScope, TimeRange
from approvaltrail.store.connection import Store
from approvaltrail.store.queries import Queries

Number = tuple[str, int]
"""A producer's id and a sequence number: one recorded event."""
_PAGE: Final = 500
_AROUND: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the store answers."""

    numbers: frozenset[Number]
    dead_numbers: frozenset[Number]
    dead_letters: int
    by_identity: Counter[EventType]
    """`uniqExact(event_id)` by type."""
    by_bitmap: Counter[EventType]
    """What the overview counts."""
    reuses: tuple[Reuse, ...]
    reuses_total: int
    completeness: Completeness


def recorded_numbers(journals: Path) -> frozenset[Number]:
    """Return every event that any journal below the folder holds."""
    found: set[Number] = set()
    for producer_id, database in _journals(journals):
        after = 0
        while rows := database.rows(after, 2**63 - 1, _PAGE):
            found |= {(producer_id, row[0]) for row in rows}
            after = rows[-1][0]
    return frozenset(found)


def journal_bodies(journals: Path) -> Iterator[bytes]:
    """Yield the events of every journal as one piece of bytes each time."""
    for _, database in _journals(journals):
        for bodies in database.bodies(0):
            yield b"\n".join(bodies)


def _journals(folder: Path) -> Iterator[tuple[str, JournalDatabase]]:
    for directory in sorted(path for path in folder.iterdir() if path.is_dir()):
        for journal in JournalDirectory(directory).every_journal():
            database = JournalDatabase.open_to_read(journal)
            try:
                yield journal.producer_id, database
            finally:
                database.close()


def ask(store: Store, started_at: datetime) -> Stored:
    """Ask the store everything that is checked."""
    queries, everybody = Queries(store), TenantScope.everything()
    now = datetime.now(UTC)
    around = TimeRange(started_at - _AROUND, now + _AROUND)
    reuses, total = _all_reuses(queries, around)
    dead = store.query(
        "SELECT producer_id, sequence FROM dead_letters FINAL WHERE redriven_at IS NULL"
    ).rows
    return Stored(
        numbers=_numbers(
            store.query("SELECT DISTINCT toString(producer_id), sequence FROM events").rows
        ),
        dead_numbers=_numbers([row for row in dead if row[0] is not None and row[1] is not None]),
        dead_letters=len(dead),
        by_identity=_by_identity(store),
        by_bitmap=Counter(
            {k: v for k, v in queries.overview(around, everybody).counts.items() if v}
        ),
        reuses=reuses,
        reuses_total=total,
        completeness=queries.completeness(everybody, now),
    )


def stored_count(store: Store) -> int:
    """Return how many distinct events are stored."""
    return int(store.query("SELECT uniqExact(event_id) FROM events").scalar())


def dead_count(store: Store) -> int:
    """Return how many dead letters are on record."""
    return int(store.query("SELECT count() FROM dead_letters FINAL").scalar())


def _by_identity(store: Store) -> Counter[EventType]:
    rows = store.query(
        "SELECT event_type, uniqExact(event_id) FROM events GROUP BY event_type"
    ).rows
    return Counter({EventType(kind): int(count) for kind, count in rows})


def _numbers(rows: object) -> frozenset[Number]:
    return frozenset((str(row[0]), int(row[1])) for row in rows)  # type: ignore[attr-defined]


def _all_reuses(queries: Queries, around: TimeRange) -> tuple[tuple[Reuse, ...], int]:
    found: list[Reuse] = []
    while True:
        page = queries.reuses(around, TenantScope.everything(), ReuseFilter(), _PAGE, len(found))
        found += page.reuses
        if not page.reuses or len(found) >= page.total:
            return tuple(found), page.total


def texts_of(store: Store) -> Iterator[bytes]:
    """Yield every text of every table of this database, a few thousand rows at a time."""
    columns = store.query(
        "SELECT table, name FROM system.columns WHERE database = currentDatabase()"
        " AND (position(type, 'String') > 0)"
        " AND table IN (SELECT name FROM system.tables WHERE database = currentDatabase()"
        " AND engine NOT LIKE '%View') ORDER BY table, position"
    ).rows
    by_table: dict[str, list[str]] = {}
    for table, name in columns:
        by_table.setdefault(str(table), []).append(str(name))
    for table, names in by_table.items():
        texts = ", ".join(f"toString(`{name}`)" for name in names)
        # names come from the store's own catalogue
        rows = store.query(f"SELECT {texts} FROM `{table}`").rows  # noqa: S608
        for start in range(0, len(rows), _PAGE):
            chunk = rows[start : start + _PAGE]
            yield "\n".join(str(value) for row in chunk for value in row).encode()
