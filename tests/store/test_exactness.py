"""Answers count each event once, whatever was inserted twice, and say what a plain model says."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.store.blocks import insert
from tests.store.world import START, World, during, key, reuses_by_nonce, world

from approvaltrail.schemas.events import EventType, NonceTrust
from approvaltrail.store.answers import EventFilter, ReuseFilter, TenantScope, TimeRange
from approvaltrail.store.queries import Queries
from approvaltrail.store.queries.linking import links_of_hashes, links_of_nonce

if TYPE_CHECKING:
    from approvaltrail.schemas.events import RecordedEvent
    from approvaltrail.store.answers import StoredEvent
    from approvaltrail.store.connection import Store

SCOPES = (TenantScope.everything(), TenantScope.only("acme"), TenantScope.only("beta"))
RANGES = (
    TimeRange(START - timedelta(days=1), START + timedelta(days=2)),
    TimeRange(START + timedelta(minutes=33, seconds=7), START + timedelta(hours=4, microseconds=1)),
    TimeRange(START + timedelta(hours=1), START + timedelta(hours=1, minutes=4)),
    TimeRange(START - timedelta(days=40), START + timedelta(days=20, seconds=1)),
)


@pytest.fixture
def filled(store: Store, request: pytest.FixtureRequest) -> tuple[Queries, World]:
    """Tell a store of a world's events several times, in shuffled parts."""
    made = world(request.param)
    events = list(made.events)
    for _ in range(3):
        made.random.shuffle(events)
        cut = made.random.randrange(1, len(events))
        insert(store, events[:cut])
        insert(store, events[cut // 2 :])
    insert(store, made.events)
    return Queries(store), made


seeded = pytest.mark.parametrize("filled", [1, 2], indirect=True, ids="seed-{}".format)


def visible(events: list[RecordedEvent], scope: TenantScope) -> list[RecordedEvent]:
    """Return what a viewer may see."""
    return [one for one in events if scope.tenant is None or one.tenant == scope.tenant]


def ids(stored: tuple[StoredEvent, ...]) -> list[str]:
    """Return identities, in order."""
    return [one.event.event_id for one in stored]


@seeded
def test_overview_counts_each_event_once(filled: tuple[Queries, World]) -> None:
    """Counts, refusals, series and the busiest equal a plain count of distinct events."""
    queries, made = filled
    for time_range in RANGES:
        for scope in SCOPES:
            answer = queries.overview(time_range, scope)
            own = visible(during(made.events, time_range), scope)
            expected = Counter(one.event_type for one in own)
            assert answer.counts == {one: expected[one] for one in EventType}
            assert answer.refusals == dict(
                Counter(one.reason for one in own if one.event_type is EventType.REFUSED)
            )
            before = TimeRange(time_range.start - time_range.length, time_range.start)
            earlier = Counter(one.event_type for one in visible(during(made.events, before), scope))
            assert answer.previous == {one: earlier[one] for one in EventType}
            bars = Counter(
                (_bucket(one.occurred_at, answer.bucket), one.event_type, one.reason) for one in own
            )
            series = {(row.bucket, row.event_type, row.reason): row.events for row in answer.series}
            assert series == bars
            tools = Counter(one.tool for one in own)
            assert {one.name: one.events for one in answer.busiest_tools} == tools
            tenants = Counter(one.tenant for one in own if one.tenant)
            assert {one.name: one.events for one in answer.busiest_tenants} == tenants
            callers = Counter(one.principal for one in own if one.principal)
            assert {one.name: one.events for one in answer.busiest_principals} == callers


def _bucket(at: datetime, size: timedelta) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=at.tzinfo)
    return at - (at - epoch) % size


@seeded
def test_pages_of_events_are_whole_and_disjoint(filled: tuple[Queries, World]) -> None:
    """Pages put together are every event of the range once, newest first, and the total says so."""
    queries, made = filled
    for time_range in RANGES:
        for scope in SCOPES:
            own = visible(during(made.events, time_range), scope)
            wanted = [one.event_id for one in sorted(own, key=key, reverse=True)]
            seen: list[str] = []
            while True:
                page = queries.events(time_range, scope, limit=37, offset=len(seen))
                assert page.total == len(wanted)
                if not page.events:
                    break
                seen += ids(page.events)
            assert seen == wanted


@seeded
def test_filters_narrow_events(filled: tuple[Queries, World]) -> None:
    """Each filter lets through exactly the events that hold its value."""
    queries, made = filled
    everything = TenantScope.everything()
    cases = {
        EventFilter(event_type=EventType.REPLAYED): lambda one: (
            one.event_type is EventType.REPLAYED
        ),
        EventFilter(principal="eve@corp", tool="tidb_execute"): lambda one: (
            one.principal == "eve@corp" and one.tool == "tidb_execute"
        ),
        EventFilter(text="MADE-up"): lambda one: one.nonce == "made-up",
        EventFilter(nonce_trust=NonceTrust.CLAIMED): lambda one: (
            one.nonce_trust is NonceTrust.CLAIMED
        ),
        EventFilter(address="10.0.0.1"): lambda _: False,
    }
    for wanted, holds in cases.items():
        page = queries.events(RANGES[0], everything, wanted, limit=1000)
        assert sorted(ids(page.events)) == sorted(
            one.event_id for one in during(made.events, RANGES[0]) if holds(one)
        )


@seeded
def test_reuses_are_found_numbered_and_linked(filled: tuple[Queries, World]) -> None:
    """Every reuse of the range is listed once with its number, issuance, acceptance and outcome."""
    queries, made = filled
    numbered = reuses_by_nonce(made.events)
    for time_range in RANGES:
        for scope in SCOPES:
            own = [
                one
                for reuses in numbered.values()
                for one in visible(during(reuses, time_range), scope)
            ]
            page = queries.reuses(time_range, scope, limit=1000)
            wanted = [one.event_id for one in sorted(own, key=key, reverse=True)]
            assert [one.presentation.event.event_id for one in page.reuses] == wanted
            assert page.total == len(wanted)
            assert page.tokens == len({one.nonce for one in own})
            for reuse in page.reuses:
                _check_links(made, numbered, reuse, scope)
            claimed = [
                one
                for one in visible(during(made.events, time_range), scope)
                if one.nonce_trust is NonceTrust.CLAIMED
            ]
            assert page.claimed == len(claimed)


def _check_links(made: World, numbered: dict, reuse: object, scope: TenantScope) -> None:
    presented = reuse.presentation.event
    same = numbered[presented.nonce]
    assert (reuse.number, reuse.total) == (same.index(presented) + 1, len(same))
    own = sorted((one for one in made.events if one.nonce == presented.nonce), key=key)
    own = [one for one in own if one.nonce_trust is NonceTrust.VERIFIED]
    issued = next((one for one in own if one.event_type is EventType.ISSUED), None)
    spent = next((one for one in own if one.event_type is EventType.ACCEPTED), None)
    assert (reuse.issuance.event if reuse.issuance else None) == (
        issued if issued and visible([issued], scope) else None
    )
    if spent is None or not visible([spent], scope):
        assert (reuse.acceptance, reuse.since_acceptance, reuse.differences) == (None, None, ())
        return
    assert reuse.acceptance.event == spent
    assert reuse.since_acceptance == presented.occurred_at - spent.occurred_at
    done = next((one for one in own if one.acceptance_id == spent.event_id), None)
    assert (reuse.completion.event if reuse.completion else None) == done
    differing = {one.field for one in reuse.differences}
    assert ("principal" in differing) is (spent.principal != presented.principal)


@seeded
def test_reuses_can_be_narrowed(filled: tuple[Queries, World]) -> None:
    """Filters of reuses narrow the list, the total and the number of tokens alike."""
    queries, made = filled
    reuses = [one for own in reuses_by_nonce(made.events).values() for one in own]
    cases = {
        ReuseFilter(strict_replays_only=True): lambda one: one.event_type is EventType.REPLAYED,
        ReuseFilter(principal="eve@corp"): lambda one: one.principal == "eve@corp",
        ReuseFilter(tenant="beta", tool="tidb_execute"): lambda one: (
            one.tenant == "beta" and one.tool == "tidb_execute"
        ),
    }
    for wanted, holds in cases.items():
        page = queries.reuses(RANGES[0], TenantScope.everything(), wanted, limit=1000)
        expected = [one for one in during(reuses, RANGES[0]) if holds(one)]
        assert sorted(one.presentation.event.event_id for one in page.reuses) == sorted(
            one.event_id for one in expected
        )
        assert page.total == len(expected)
        assert page.tokens == len({one.nonce for one in expected})


@seeded
def test_trails_hold_every_event_of_a_nonce(filled: tuple[Queries, World]) -> None:
    """A trail holds each of its nonce's events in its place; other tenants' are withheld."""
    queries, made = filled
    numbered = reuses_by_nonce(made.events)
    for nonce in sorted({one.nonce for one in made.events if one.nonce})[::3]:
        own = sorted((one for one in made.events if one.nonce == nonce), key=key)
        for scope in SCOPES:
            _check_trail(queries.trail(nonce, scope), own, numbered.get(nonce, []), scope)


def _check_trail(
    trail: object, own: list[RecordedEvent], reuses: list[RecordedEvent], scope: TenantScope
) -> None:
    seen = visible(own, scope)
    if not seen:
        assert (trail.trust, trail.withheld) == (NonceTrust.NONE, 0)
        return
    reused = visible(reuses, scope)
    assert [one.presentation.event for one in trail.reuses] == reused
    assert [one.number for one in trail.reuses] == [reuses.index(one) + 1 for one in reused]
    assert trail.reuses_total == len(reuses)
    sure = [one for one in seen if one.nonce_trust is NonceTrust.VERIFIED]
    assert ids(trail.claimed) == [one.event_id for one in seen if one not in sure]
    refused = [one for one in sure if one.event_type is EventType.REFUSED and one not in reuses]
    assert ids(trail.early_refusals) == [one.event_id for one in refused]
    assert ids(trail.completions) == [
        one.event_id for one in sure if one.event_type is EventType.COMPLETED
    ]
    presented = [
        one
        for one in own
        if one.nonce_trust is NonceTrust.VERIFIED
        and one.event_type in {EventType.ACCEPTED, EventType.REFUSED, EventType.REPLAYED}
    ]
    assert trail.withheld == len(presented) - len(visible(presented, scope))


@seeded
def test_nonces_presented_often_are_linked_like_others(filled: tuple[Queries, World]) -> None:
    """The store, which links a nonce with many events by itself, says what is said of few."""
    queries, made = filled
    store = queries._store
    for nonce in sorted({one.nonce for one in made.events if one.nonce})[::4]:
        for scope in SCOPES:
            few = links_of_nonce(store, nonce, scope)
            assert links_of_nonce(store, nonce, scope, most=0) == few
            assert few is not None
            hashes, chosen = [few.nonce_hash], [key[1] for key, _ in few.reuses[::2]]
            numbered = links_of_hashes(store, hashes, chosen, scope)
            assert links_of_hashes(store, hashes, chosen, scope, most=0) == numbered


def test_an_unknown_nonce_has_an_empty_trail(store: Store) -> None:
    """A nonce of which nothing is known has a trail that says so."""
    trail = Queries(store).trail("never-seen", TenantScope.everything())
    assert (trail.trust, trail.reuses, trail.missing) == (NonceTrust.NONE, (), ())
