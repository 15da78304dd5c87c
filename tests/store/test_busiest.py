"""The busiest of a long range are ranked from what is kept by the day, and exactly all the same."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tests.store.blocks import insert
from tests.store.world import START, World, during, world

from approvaltrail.schemas.events import EventType
from approvaltrail.store.answers import Ranked, TenantScope, TimeRange
from approvaltrail.store.connection import open_store
from approvaltrail.store.migrations import migrate, migrations
from approvaltrail.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from approvaltrail.schemas.events import RecordedEvent
    from approvaltrail.store.connection import Store

EVERYTHING = TenantScope.everything()
MONTH = TimeRange(START - timedelta(days=11, hours=5), START + timedelta(days=17, minutes=3))


def ranked(names: Iterable[str | None]) -> tuple[Ranked, ...]:
    """Rank names by how often they come, the ten most frequent first."""
    counted = Counter(name for name in names if name is not None)
    first = sorted(counted.items(), key=lambda one: (-one[1], one[0]))[:10]
    return tuple(Ranked(name=name, events=count) for name, count in first)


def assert_busiest(store: Store, events: list[RecordedEvent], time_range: TimeRange) -> None:
    """Hold all three rankings to a plain count of distinct events."""
    answer = Queries(store).overview(time_range, EVERYTHING)
    own = during(events, time_range)
    assert answer.busiest_tenants == ranked(one.tenant for one in own)
    assert answer.busiest_tools == ranked(one.tool for one in own)
    assert answer.busiest_principals == ranked(one.principal for one in own)


def spread(made: World, principal: str, events: int, first: int = 0) -> None:
    """Let a caller have events on whole days and at both ends of the month."""
    for number in range(first, first + events):
        at = MONTH.start + MONTH.length * ((number * 7919 % 1000) / 1000)
        made.add(EventType.ISSUED, at, principal=principal, nonce=f"{principal}-{number}")


def test_a_bound_that_misleads_does_not_change_the_ranking(store: Store) -> None:
    """Callers whose events were inserted often do not outrank those who have more of them."""
    made = world(3, tokens=0)
    for number in range(70):
        spread(made, f"loud{number:02}@corp", 1, first=number)
    loud = list(made.events)
    for number in range(12):
        spread(made, f"busy{number:02}@corp", 2 + number // 4)
    for table in ("events", "callers_1d"):
        store.command(f"SYSTEM STOP MERGES {table}")
    insert(store, made.events)
    for _ in range(6):
        insert(store, loud)
    assert_busiest(store, made.events, MONTH)


@pytest.mark.parametrize("days", [1.99, 3.2, 40])
def test_whole_days_and_ends_make_up_the_range(store: Store, days: float) -> None:
    """Wherever a range is cut into days and ends, each event counts once and none is left out."""
    made = world(4, tokens=20)
    for number in range(9):
        spread(made, f"caller{number}@corp", 3 * number)
    insert(store, made.events)
    insert(store, made.events[::3])
    start = START - timedelta(days=days / 3, seconds=11)
    assert_busiest(store, made.events, TimeRange(start, start + timedelta(days=days)))


def test_a_store_of_an_earlier_version_is_filled_in(empty_dsn: str) -> None:
    """What was stored before the tables by the day existed is ranked like what comes after."""
    made = world(5, tokens=30)
    spread(made, "ana@corp", 40)
    cut = len(made.events) // 2
    with open_store(empty_dsn) as store:
        migrate(store, migrations()[:2])
        insert(store, made.events[:cut])
        assert migrate(store) == [step.name for step in migrations()[2:]]
        insert(store, made.events[cut // 2 :])
        assert_busiest(store, made.events, MONTH)
