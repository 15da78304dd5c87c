"""What is inserted is what was sent, whole or not at all, and twice is once."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.strategies import recorded_events
from tests.store.blocks import block_of, insert, insert_bodies
from tests.store.world import world

from approvaltrail.schemas.contract import HEADER_BYTES, event_contract
from approvaltrail.schemas.encoding import encode_recorded, varint
from approvaltrail.schemas.events import RecordedEvent
from approvaltrail.store.answers import TimeRange
from approvaltrail.store.errors import StoreRefusedError
from approvaltrail.store.rows import SELECTED, recorded_event
from approvaltrail.store.writing import insert_events

if TYPE_CHECKING:
    from collections.abc import Callable

    from approvaltrail.store.connection import Store


def stored(store: Store) -> list[bytes]:
    """Every stored event, encoded again, in order."""
    rows = store.query(f"SELECT {SELECTED} FROM events FINAL ORDER BY kafka_offset")
    return [encode_recorded(recorded_event(row)) for row in rows.dicts()]


def body(event: RecordedEvent) -> bytes:
    return encode_recorded(event)[HEADER_BYTES:]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(recorded_events(), min_size=1, max_size=40, unique_by=lambda one: one.event_id))
def test_a_stored_row_encodes_to_the_bytes_it_came_from(
    store: Store, events: list[RecordedEvent]
) -> None:
    """Every event comes back from the store as the very bytes that a producer sealed."""
    store.command("TRUNCATE TABLE events")
    insert(store, events)
    assert stored(store) == [encode_recorded(event) for event in events]


def test_null_and_the_empty_text_stay_apart(store: Store) -> None:
    """An attribute's empty value is stored as such, and a field left out as null."""
    event = world(5, tokens=1).events[0].model_copy(update={"attributes": (("note", ""),)})
    insert(store, [event])
    assert stored(store) == [encode_recorded(event)]
    assert store.query("SELECT isNull(target), attributes[1].2 FROM events").rows == [(1, "")]


def test_an_insert_repeated_counts_once(store: Store) -> None:
    """The same block inserted twice leaves one row an event in every table that is read."""
    events = world(6, tokens=20).events
    insert(store, events)
    insert(store, events)
    assert len(stored(store)) == len(events)
    trail = store.query("SELECT count() FROM nonce_trail FINAL").scalar()
    assert trail == sum(1 for event in events if event.nonce)


def _wrong_fence(bodies: list[bytes]) -> list[bytes]:
    return [*bodies[:-1], bodies[-1] + varint(0)]


def _cut(bodies: list[bytes]) -> list[bytes]:
    return [bodies[0][:-3], *bodies[1:]]


def _joined(bodies: list[bytes]) -> list[bytes]:
    return [bodies[0] + bodies[1], *bodies[1:]]


def _not_utf8(bodies: list[bytes]) -> list[bytes]:
    return [bodies[0].replace(b"tidb-mcp", b"tidb-\xff\xfe\xfd"), *bodies[1:]]


def _halved_character(bodies: list[bytes]) -> list[bytes]:
    """End one text in half a character and begin the next with the other half."""
    return [
        bodies[0].replace(b"tidb-mcp", b"tidb-mc\xc3").replace(b"pod-1", b"\xa9od-1"),
        *bodies[1:],
    ]


def _not_utf8_where_null_is_allowed(bodies: list[bytes]) -> list[bytes]:
    return [bodies[0].replace(b"ana@corp", b"ana\xffcorp"), *bodies[1:]]


def _not_utf8_in_an_attribute(bodies: list[bytes]) -> list[bytes]:
    return [bodies[0].replace(b"a note", b"a n\xffte"), *bodies[1:]]


@pytest.mark.parametrize(
    "damage",
    [
        _wrong_fence,
        _cut,
        _joined,
        _not_utf8,
        _not_utf8_where_null_is_allowed,
        _not_utf8_in_an_attribute,
        _halved_character,
    ],
)
def test_a_block_that_is_not_what_it_says_leaves_nothing(
    store: Store, damage: Callable[[list[bytes]], list[bytes]]
) -> None:
    """One bad record refuses its block: no neighbour is damaged, and none stored."""
    noted = {"principal": "ana@corp", "attributes": (("note", "a note"),)}
    bodies = [body(event.model_copy(update=noted)) for event in world(7, tokens=10).events]
    assert damage(bodies) != bodies
    with pytest.raises(StoreRefusedError):
        insert_bodies(store, damage(bodies))
    for table in ("events", "nonce_trail", "seq_cover", "count_5m"):
        assert store.query(f"SELECT count() FROM {table}").scalar() == 0


@pytest.mark.parametrize("sequence", [0, -1])
def test_a_sequence_below_one_is_refused(store: Store, sequence: int) -> None:
    """A negative number would turn into a huge one; it is refused instead."""
    event = world(8, tokens=1).events[0].model_copy(update={"sequence": sequence})
    with pytest.raises(StoreRefusedError):
        insert(store, [event])


def test_times_out_of_range_are_refused(store: Store) -> None:
    """With bounds given, a block with an event outside of them is refused."""
    events = world(9, tokens=3).events
    first, last = events[0].occurred_at, max(event.occurred_at for event in events)
    bodies = [body(event) for event in events]
    with pytest.raises(StoreRefusedError):
        insert_bodies(store, bodies, times=TimeRange(first, last))
    insert_bodies(store, bodies, times=TimeRange(first, last + timedelta(seconds=1)))
    assert len(stored(store)) == len(events)


def test_an_unknown_schema_is_not_inserted(store: Store) -> None:
    """A fingerprint that no contract has is refused before anything is sent."""
    with pytest.raises(ValueError, match="fingerprint"):
        insert_events(store, b"", 1, "0" * 16)


def test_a_symbol_of_a_newer_version_is_shown_as_other(store: Store) -> None:
    """A stored reason that this version does not know is read as `other`, not as an error."""
    event = world(10, tokens=5).events[0]
    insert(store, [event])
    row = store.query(f"SELECT {SELECTED} FROM events").dicts()[0]
    read = recorded_event({**row, "event_type": "refused", "reason": "too_new"})
    assert read.reason == "other"
    assert read.event_id == event.event_id


def test_the_guarded_insert_works_over_http(database: str) -> None:
    """Over ClickHouse's HTTP interface the same block is stored, or refused, alike."""
    from approvaltrail.store.connection import open_store
    from approvaltrail.store.migrations import migrate

    events = world(11, tokens=30).events
    with open_store(database) as store:
        migrate(store)
        insert(store, events)
        assert stored(store) == [encode_recorded(event) for event in events]
        fence = secrets.randbits(62)
        block = block_of([body(event) for event in events], fence)
        with pytest.raises(StoreRefusedError):
            insert_events(store, block, fence + 1, event_contract().fingerprint)
        assert store.query("SELECT count() FROM events").scalar() == len(events)
        assert store.query("SELECT min(stored_at) FROM events").scalar() > datetime(
            2026, 1, 1, tzinfo=UTC
        )
