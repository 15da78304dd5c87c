"""What the ledger, refusals and pipeline pages ask: exact beside a plain computation in Python."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from tests.store.blocks import insert
from tests.store.world import START, during, world

from approvaltrail.schemas.events import EventType, NonceTrust, Reason, RecordedEvent
from approvaltrail.store.answers import EventFilter, Fate, TenantScope, TimeRange
from approvaltrail.store.connection import Store
from approvaltrail.store.queries import Queries

EVERYTHING = TenantScope.everything()
SPAN = TimeRange(START, START + timedelta(hours=3))
NOW = START + timedelta(hours=2)
"""So that some tokens are still valid."""


def spent(events: list[RecordedEvent]) -> tuple[set[str], set[str]]:
    """Return the nonces with an acceptance, and those that a presentation found spent."""
    verified = [one for one in events if one.nonce_trust is NonceTrust.VERIFIED]
    accepted = {str(one.nonce) for one in verified if one.event_type is EventType.ACCEPTED}
    found = {str(one.nonce) for one in verified if one.event_type is EventType.REPLAYED}
    return accepted, found - accepted


def fates_of(events: list[RecordedEvent], scope: TenantScope) -> dict[Fate, set[str]]:
    """Return the fate of every nonce issued in the span, from the events alone."""
    mine = [one for one in events if scope.tenant in {None, one.tenant}]
    accepted, unrecorded = spent(mine)
    fates: dict[Fate, set[str]] = {fate: set() for fate in Fate}
    issued = [one for one in during(mine, SPAN) if one.event_type is EventType.ISSUED]
    for one in issued:
        nonce = str(one.nonce)
        if nonce in accepted:
            fate = Fate.ACCEPTED
        elif nonce in unrecorded:
            fate = Fate.SPENT_UNRECORDED
        elif one.expires_at is None:
            fate = Fate.EXPIRY_UNKNOWN
        else:
            fate = Fate.EXPIRED if one.expires_at <= NOW else Fate.OUTSTANDING
        fates[fate].add(nonce)
    ever = {str(one.nonce) for one in events if one.event_type is EventType.ISSUED}
    late = [one for one in during(mine, SPAN) if one.event_type is EventType.ACCEPTED]
    fates[Fate.ACCEPTED_UNISSUED] = {str(one.nonce) for one in late} - ever
    return fates


@pytest.mark.parametrize("tenant", [None, "acme"])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_nonce_issued_has_one_fate(store: Store, seed: int, tenant: str | None) -> None:
    """The balance closes, twice stored or not, and each fate lists exactly its nonces."""
    events = world(seed).events
    insert(store, events)
    insert(store, events[::2])
    scope = EVERYTHING if tenant is None else TenantScope.only(tenant)
    queries = Queries(store)
    expected = fates_of(events, scope)
    balance = queries.ledger_balance(SPAN, scope, NOW)
    assert balance.fates == {
        fate: len(nonces) for fate, nonces in expected.items() if fate is not Fate.ACCEPTED_UNISSUED
    }
    assert balance.accepted_unissued == len(expected[Fate.ACCEPTED_UNISSUED])
    for fate, nonces in expected.items():
        listed = queries.ledger_nonces(SPAN, scope, NOW, fate, limit=1000)
        assert {str(one.event.nonce) for one in listed} == nonces, fate
        times = [one.event.occurred_at for one in listed]
        assert times == sorted(times, reverse=True)


def test_claims_are_acceptances_that_spend_each_counted_once(store: Store) -> None:
    """By tools with a ledger and without; the latest is known whatever the range."""
    events = [
        one.model_copy(update={"ledgered": number % 3 > 0})
        for number, one in enumerate(world(9).events)
    ]
    insert(store, events)
    insert(store, events[::2])
    accepted = [one for one in events if one.event_type is EventType.ACCEPTED]
    inside = during(accepted, SPAN)
    found = Queries(store).ledger_claims(SPAN, EVERYTHING)
    assert found.claims == sum(one.ledgered for one in inside) > 0
    assert found.unledgered_acceptances == sum(not one.ledgered for one in inside) > 0
    assert found.last_claim_at == max(one.occurred_at for one in accepted if one.ledgered)


def test_a_spent_nonce_without_its_acceptance_is_named(store: Store) -> None:
    """What the ledger must know and the store does not is a fate of its own, not `expired`."""
    made = world(3, tokens=0)
    made.producers = [made.identity()]
    common = {"nonce": "n", "issued_at": START, "expires_at": START + timedelta(minutes=10)}
    made.add(EventType.ISSUED, START, tenant="acme", **common)
    made.add(
        EventType.REPLAYED,
        START + timedelta(minutes=1),
        tenant="acme",
        reason=Reason.ALREADY_USED,
        **common,
    )
    insert(store, made.events)
    balance = Queries(store).ledger_balance(SPAN, EVERYTHING, NOW)
    assert balance.fates[Fate.SPENT_UNRECORDED] == balance.issued == 1


def test_outages_are_refusals_close_together(store: Store) -> None:
    """Each server's own, apart when more than five minutes lie between, each refusal once."""
    made = world(4, tokens=0)
    made.producers = [made.identity()]
    minutes = (0, 1, 4, 30, 31)
    for minute in minutes:
        made.add(
            EventType.REFUSED,
            START + timedelta(minutes=minute),
            nonce=f"n{minute}",
            reason=Reason.LEDGER_UNAVAILABLE,
            tenant="acme",
        )
    made.add(
        EventType.REFUSED,
        START + timedelta(minutes=2),
        nonce="other",
        reason=Reason.WRONG_TOOL,
        tenant="acme",
    )
    insert(store, made.events)
    insert(store, made.events)
    found = Queries(store).ledger_outages(SPAN, EVERYTHING)
    assert [(one.first, one.last, one.refusals) for one in found] == [
        (START + timedelta(minutes=30), START + timedelta(minutes=31), 2),
        (START, START + timedelta(minutes=4), 3),
    ]
    assert Queries(store).ledger_outages(SPAN, TenantScope.only("beta")) == ()


def test_a_histogram_counts_each_event_once_in_its_bucket(store: Store) -> None:
    """By bucket, type and reason, under a filter and within a scope."""
    events = world(5).events
    insert(store, events)
    insert(store, events[::3])
    scope = TenantScope.only("acme")
    found = Queries(store).histogram(SPAN, scope, EventFilter(event_type=EventType.REFUSED))
    seconds = found.bucket.total_seconds()
    expected: Counter[tuple[float, Reason | None]] = Counter()
    for one in during(events, SPAN):
        if one.tenant == "acme" and one.event_type is EventType.REFUSED:
            bucket = one.occurred_at.timestamp() // seconds * seconds
            expected[bucket, one.reason] += 1
    assert {(one.bucket.timestamp(), one.reason): one.events for one in found.series} == expected
    assert sum(expected.values()) > 0


def test_a_ranking_counts_each_event_once(store: Store) -> None:
    """The most frequent values first, absent ones left out; unknown fields are refused."""
    events = world(6).events
    insert(store, events)
    insert(store, events[::3])
    found = Queries(store).ranking(SPAN, EVERYTHING, EventFilter(), ("tool", "tenant"))
    for field in ("tool", "tenant"):
        counted = Counter(getattr(one, field) for one in during(events, SPAN))
        counted.pop(None, None)
        assert {one.name: one.events for one in found[field]} == counted
        assert [one.events for one in found[field]] == sorted(counted.values(), reverse=True)
    with pytest.raises(ValueError, match="ranked by"):
        Queries(store).ranking(SPAN, EVERYTHING, None, ("nonce",))


def test_tenants_are_those_of_the_range_and_scope(store: Store) -> None:
    """In order, each once; a viewer of one tenant learns of no other."""
    insert(store, world(7).events)
    assert Queries(store).tenants(SPAN, EVERYTHING) == ("acme", "beta")
    assert Queries(store).tenants(SPAN, TenantScope.only("beta")) == ("beta",)
    later = TimeRange(START + timedelta(days=90), START + timedelta(days=91))
    assert Queries(store).tenants(later, EVERYTHING) == ()


def test_arrivals_tell_when_and_how_late(store: Store) -> None:
    """The last storing is known whatever its age; counts and delays are those of the window."""
    queries = Queries(store)
    assert queries.arrivals(EVERYTHING, NOW).last_stored_at is None
    events = world(8).events
    insert(store, events)
    insert(store, events)
    last = max(one.occurred_at for one in events)
    lately = queries.arrivals(EVERYTHING, last)
    window = [one for one in events if one.occurred_at >= last - lately.window]
    assert lately.stored == len(window)
    assert lately.last_stored_at is not None
    assert lately.median_delay is not None
    quiet = queries.arrivals(EVERYTHING, last + timedelta(days=30))
    assert (quiet.stored, quiet.median_delay) == (0, None)
    assert quiet.last_stored_at is not None
