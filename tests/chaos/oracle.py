"""What must be true of the store, held against what the recording process was told."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from tests.consumers.parts import counted, stored_ids
from tests.support.processes import wait_until

from approvaltrail.producer.seals import verify_seals
from approvaltrail.schemas.encoding import encode_recorded, microseconds
from approvaltrail.schemas.messages import Seal
from approvaltrail.store.answers import Completeness, CompletenessState, TenantScope
from approvaltrail.store.connection import Store, open_store
from approvaltrail.store.errors import StoreError
from approvaltrail.store.queries import Bounds, Queries
from approvaltrail.store.rows import recorded_event

if TYPE_CHECKING:
    from tests.chaos.notebook import Noted, Reader

EVERYTHING = TenantScope.everything()
BOUNDS = Bounds(in_flight=timedelta(seconds=3), silent_after=timedelta(seconds=3))
_ASK_EVERY_SECONDS = 0.05
_SEAL_FIELDS = tuple(Seal.model_fields)


def assert_exact(store: Store, noted: Noted) -> None:
    """All that was acknowledged is stored, nothing else is, and each event counts once."""
    stored = stored_ids(store)
    assert not noted.acknowledged - stored, f"{len(noted.acknowledged - stored)} events are lost"
    assert not stored - noted.attempted, "events are stored that nobody recorded"
    # an insert fills the table first and its views after it
    wait_until(lambda: counted(store) == len(stored), "each event counts once", 20)
    for producer_id, numbers in _numbers(store).items():
        assert numbers == list(range(1, len(numbers) + 1)), f"{producer_id} has a gap or a double"


def _numbers(store: Store) -> dict[str, list[int]]:
    rows = store.query(
        "SELECT producer_id, arraySort(groupArray(sequence)) FROM "
        "(SELECT DISTINCT producer_id, sequence, event_id FROM events) GROUP BY producer_id"
    ).rows
    return {str(producer_id): list(numbers) for producer_id, numbers in rows}


def sealed(store: Store) -> int:
    """Return up to where seals are stored, over all producers; nothing is recomputed."""
    rows = store.query("SELECT max(last_sequence) FROM seals GROUP BY producer_id").rows
    return sum(int(row[0]) for row in rows)


def assert_sealed(store: Store) -> int:
    """Recompute each seal from the stored rows; return how many events they cover."""
    covered = 0
    for producer_id in _numbers(store):
        seals = _seals(store, producer_id)
        faults = verify_seals(
            seals, lambda first, last, of=producer_id: _bodies(store, of, first, last)
        )
        assert not faults, f"{producer_id}, {len(seals)} seals: {faults[:3]}"
        covered += Seal.decode(seals[-1]).last_sequence if seals else 0
    return covered


def _seals(store: Store, producer_id: str) -> list[bytes]:
    rows = store.query(
        f"SELECT {', '.join(_SEAL_FIELDS)} FROM seals FINAL "
        "WHERE producer_id = {producer_id:UUID} ORDER BY seal_number",
        {"producer_id": producer_id},
    ).dicts()
    return [Seal(**row | {"producer_id": str(row["producer_id"])}).encode() for row in rows]


def _bodies(store: Store, producer_id: str, first: int, last: int) -> Sequence[bytes]:
    rows = store.query(
        "SELECT * FROM events WHERE producer_id = {producer_id:UUID} "
        "AND sequence BETWEEN {first:UInt64} AND {last:UInt64} "
        "ORDER BY sequence LIMIT 1 BY event_id",
        {"producer_id": producer_id, "first": first, "last": last},
    ).dicts()
    return [encode_recorded(recorded_event(row)) for row in rows]


def completeness(store: Store) -> Completeness:
    """Ask, with bounds as short as the tests are."""
    return Queries(store, bounds=BOUNDS).completeness(EVERYTHING, datetime.now(UTC))


class Questioner:
    """Asks for completeness without end and holds each answer to what was acknowledged before."""

    def __init__(self, dsn: str, notes: Reader) -> None:
        self._dsn = dsn
        self._notes = notes
        self._stored: dict[str, set[int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="questioner")
        self.answers: dict[CompletenessState, int] = {}
        self.lies: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        with open_store(self._dsn, timeout_seconds=10) as store:
            while not self._stop.wait(_ASK_EVERY_SECONDS):
                try:
                    self._ask(store)
                except StoreError:  # the engine is away: there is no answer to judge
                    continue

    def _ask(self, store: Store) -> None:
        noted = self._notes.read()
        before = {producer: dict(times) for producer, times in noted.times.items()}
        answer = completeness(store)
        answered = datetime.now(UTC)
        self.answers[answer.state] = self.answers.get(answer.state, 0) + 1
        for status in answer.producers:
            claimed = status.complete_until
            if claimed is None:
                continue
            until = microseconds(claimed)
            times = before.get(status.producer_id, {})
            due = {number for number, at in times.items() if at < until}
            lacking = due - self._known(store, status.producer_id, due, answered)
            if lacking:
                self.lies.append(
                    f"{answer.state}: complete until {claimed.isoformat()}, and {len(lacking)} "
                    f"events recorded before that are not stored, such as {min(lacking)} recorded "
                    f"{until - times[min(lacking)]} µs before"
                )

    def _known(self, store: Store, producer_id: str, due: set[int], answered: datetime) -> set[int]:
        """Return which of these were stored by then, asking for those alone that are not known.

        Rows that arrived between the answer and this look do not make the answer true.
        """
        known = self._stored.setdefault(producer_id, set())
        unknown = sorted(due - known)
        if unknown:
            rows = store.query(
                "SELECT DISTINCT sequence FROM events WHERE producer_id = {producer_id:UUID} "
                "AND sequence BETWEEN {first:UInt64} AND {last:UInt64} "
                "AND stored_at <= {answered:DateTime64(6, 'UTC')}",
                {
                    "producer_id": producer_id,
                    "first": unknown[0],
                    "last": unknown[-1],
                    "answered": answered,
                },
            ).rows
            known |= {int(row[0]) for row in rows}
        return known
