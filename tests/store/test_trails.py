"""Trails at their edges: many reuses, missing pieces, other tenants, unverified nonces."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.store.blocks import insert
from tests.store.world import World

from approvaltrail.schemas.events import AddressSource, EventType, NonceTrust, Reason
from approvaltrail.schemas.identity import new_event_id
from approvaltrail.schemas.messages import Heartbeat
from approvaltrail.store.answers import TenantScope, TimeRange
from approvaltrail.store.queries import Queries
from approvaltrail.store.writing import insert_heartbeats

if TYPE_CHECKING:
    from approvaltrail.schemas.events import RecordedEvent
    from approvaltrail.store.connection import Store

AT = datetime(2026, 3, 8, 9, 0, tzinfo=UTC)
EVERYTHING = TenantScope.everything()
DAY = TimeRange(AT, AT + timedelta(days=1))


@pytest.fixture
def made() -> World:
    """Make a world with one producer and nothing in it yet."""
    world = World(random.Random(0))
    world.producers = [world.identity()]
    return world


@pytest.fixture
def queries(store: Store) -> Queries:
    """Ask at a time shortly after everything happened."""
    return Queries(store, clock=lambda: AT + timedelta(days=1))


def life(made: World, nonce: str = "n", **values: object) -> tuple[RecordedEvent, RecordedEvent]:
    """Have a token issued and accepted."""
    common = {"nonce": nonce, "issued_at": AT, "tool": "tidb_execute", "tenant": "acme", **values}
    issued = made.add(EventType.ISSUED, AT, **common)
    return issued, made.add(EventType.ACCEPTED, AT + timedelta(seconds=20), **common)


def replay(made: World, seconds: float, nonce: str = "n", **values: object) -> RecordedEvent:
    """Have the token come back."""
    values = {
        "nonce": nonce,
        "reason": Reason.ALREADY_USED,
        "tool": "tidb_execute",
        "tenant": "acme",
        "issued_at": AT,
        **values,
    }
    return made.add(EventType.REPLAYED, AT + timedelta(seconds=seconds), **values)


def reports(store: Store, made: World, last_sequence: int) -> None:
    """Have the producer say how far it got."""
    for seconds_ago in (600, 5):
        beat = Heartbeat(
            producer_id=made.producers[0],
            service="s",
            instance="i",
            sent_at=AT + timedelta(days=1, seconds=-seconds_ago),
            started_at=AT,
            state="live",
            last_sequence=last_sequence,
        )
        insert_heartbeats(store, [beat])


def test_many_reuses_are_shown_from_both_ends(store: Store, queries: Queries, made: World) -> None:
    """Of 250 reuses the first and last hundred are given, with their true numbers."""
    life(made)
    for number in range(250):
        replay(made, 60 + number)
    insert(store, made.events)
    trail = queries.trail("n", EVERYTHING)
    assert trail.reuses_total == 250
    assert [one.number for one in trail.reuses] == [*range(1, 101), *range(151, 251)]
    assert {one.total for one in trail.reuses} == {250}
    page = queries.reuses(DAY, EVERYTHING, limit=10, offset=100)
    assert [one.number for one in page.reuses] == list(range(150, 140, -1))
    assert (page.total, page.tokens) == (250, 1)


def test_many_early_refusals_stay_bounded(store: Store, queries: Queries, made: World) -> None:
    """A token refused again and again without an acceptance has a trail of bounded length."""
    for number in range(230):
        made.add(
            EventType.REFUSED,
            AT + timedelta(seconds=number),
            nonce="n",
            reason=Reason.WRONG_TOOL,
        )
    insert(store, made.events)
    trail = queries.trail("n", EVERYTHING)
    assert len(trail.early_refusals) == 200
    assert (trail.reuses, trail.reuses_total) == ((), 0)
    assert queries.reuses(DAY, EVERYTHING).total == 0


def test_claimed_nonces_are_counted_and_never_linked(
    store: Store, queries: Queries, made: World
) -> None:
    """An unverified presentation of a used nonce's text is no reuse and moves no number."""
    life(made)
    for number in range(120):
        made.add(
            EventType.REFUSED,
            AT + timedelta(seconds=30 + number),
            nonce="n",
            nonce_trust=NonceTrust.CLAIMED,
            reason=Reason.BAD_SIGNATURE,
        )
    last = replay(made, 600)
    insert(store, made.events)
    trail = queries.trail("n", EVERYTHING)
    assert (trail.claimed_total, len(trail.claimed)) == (120, 100)
    assert [(one.number, one.presentation.event) for one in trail.reuses] == [(1, last)]
    assert queries.reuses(DAY, EVERYTHING).claimed == 120


def test_a_nonce_only_claimed_has_no_trust(store: Store, queries: Queries, made: World) -> None:
    """A text that only unverified tokens ever held is claimed, not verified, and lacks nothing."""
    made.add(
        EventType.REFUSED,
        AT,
        nonce="forged",
        nonce_trust=NonceTrust.CLAIMED,
        reason=Reason.BAD_SIGNATURE,
    )
    insert(store, made.events)
    trail = queries.trail("forged", EVERYTHING)
    assert (trail.trust, trail.missing, len(trail.claimed)) == (NonceTrust.CLAIMED, (), 1)


def test_differences_say_how_far_they_are_trusted(
    store: Store, queries: Queries, made: World
) -> None:
    """Fields that differ from the accepting call are listed, each with its trust."""
    life(
        made,
        principal="ana@corp",
        session_id="s1",
        client_name="cursor",
        client_address="10.0.0.7",
        address_source=AddressSource.PEER,
        plan_hash="a" * 64,
    )
    replay(
        made,
        60,
        principal="eve@corp",
        session_id="s1",
        client_name="curl",
        client_address="203.0.113.9",
        address_source=AddressSource.UNKNOWN,
    )
    insert(store, made.events)
    (reuse,) = queries.trail("n", EVERYTHING).reuses
    found = {one.field: (one.accepted, one.presented, one.trusted) for one in reuse.differences}
    assert found == {
        "principal": ("ana@corp", "eve@corp", True),
        "client_name": ("cursor", "curl", False),
        "client_address": ("10.0.0.7", "203.0.113.9", False),
        "plan_hash": ("a" * 64, None, False),
    }
    assert reuse.since_acceptance == timedelta(seconds=40)
    assert reuse.is_strict_replay


def test_a_completion_belongs_to_the_acceptance_it_names(
    store: Store, queries: Queries, made: World
) -> None:
    """With two acceptances, the outcome shown is that of the first."""
    _, first = life(made)
    again = made.add(
        EventType.ACCEPTED,
        AT + timedelta(seconds=90),
        nonce="n",
        tool="tidb_execute",
        tenant="acme",
        issued_at=AT,
    )
    for seconds, acceptance, outcome in ((100, again, "failed"), (200, first, "succeeded")):
        made.add(
            EventType.COMPLETED,
            AT + timedelta(seconds=seconds),
            nonce="n",
            tenant="acme",
            outcome=outcome,
            acceptance_id=acceptance.event_id,
        )
    insert(store, made.events)
    (reuse,) = queries.reuses(DAY, EVERYTHING).reuses
    assert reuse.presentation.event == again
    assert reuse.completion.event.outcome == "succeeded"


def test_a_second_acceptance_is_found_whatever_the_range_holds(
    store: Store, queries: Queries, made: World
) -> None:
    """A reuse by acceptance is found though the first acceptance lies before the range."""
    life(made)
    again = made.add(
        EventType.ACCEPTED, AT + timedelta(hours=20), nonce="n", tenant="acme", issued_at=AT
    )
    insert(store, made.events)
    page = queries.reuses(TimeRange(AT + timedelta(hours=19), DAY.end), EVERYTHING)
    assert [one.presentation.event for one in page.reuses] == [again]
    assert page.reuses[0].since_acceptance == timedelta(hours=20) - timedelta(seconds=20)


@pytest.mark.parametrize("issued_at", [AT, None])
def test_a_refusal_long_after_the_acceptance_is_a_reuse(
    store: Store, queries: Queries, made: World, issued_at: datetime | None
) -> None:
    """However old its token is, and though nothing says when that was issued."""
    life(made)
    late = AT + timedelta(days=40)
    refused = {"nonce": "n", "reason": Reason.EXPIRED, "tenant": "acme", "issued_at": issued_at}
    came_back = made.add(EventType.REFUSED, late, **refused)
    made.add(EventType.REFUSED, late, **{**refused, "nonce": "never accepted"})
    insert(store, made.events)
    page = queries.reuses(TimeRange(late, late + timedelta(hours=1)), EVERYTHING)
    assert [one.presentation.event for one in page.reuses] == [came_back]
    assert (page.total, page.tokens) == (1, 1)


def test_every_page_of_reuses_holds_what_follows_the_one_before(
    store: Store, queries: Queries, made: World
) -> None:
    """Second acceptances and what was turned down stand in one order, page after page."""
    life(made)
    for minute in range(1, 30):
        if minute % 3:
            replay(made, 60 * minute)
        else:
            at = AT + timedelta(minutes=minute)
            made.add(EventType.ACCEPTED, at, nonce="n", tenant="acme", issued_at=AT)
    insert(store, made.events)
    whole = queries.reuses(DAY, EVERYTHING, limit=1000)
    assert whole.total == len(whole.reuses) == 29
    for limit in (1, 4, 10):
        pages = [
            queries.reuses(DAY, EVERYTHING, limit=limit, offset=offset).reuses
            for offset in range(0, 30, limit)
        ]
        assert [one for page in pages for one in page] == list(whole.reuses)


def test_a_reuse_without_a_stored_acceptance_is_shown(
    store: Store, queries: Queries, made: World
) -> None:
    """Where only the ledger knows of the acceptance, the trail says so and names the claim."""
    made.add(EventType.ISSUED, AT, nonce="n")
    claim = new_event_id()
    replay(made, 60, spent_claim_id=claim, spent_at=AT + timedelta(seconds=20))
    insert(store, made.events)
    reports(store, made, 2)
    trail = queries.trail("n", EVERYTHING)
    assert (trail.acceptance, trail.reuses[0].since_acceptance) == (None, None)
    (missing,) = trail.missing
    assert missing.piece == "acceptance"
    assert claim in missing.explanation


def test_a_missing_issuance_names_the_gap(store: Store, queries: Queries, made: World) -> None:
    """An issuance that is not stored is explained by what its producers lack."""
    life(made)
    replay(made, 60)
    made.counts[made.producers[0]] += 2
    made.add(EventType.ISSUED, AT - timedelta(days=1), nonce="other")
    insert(store, [one for one in made.events if one.event_type is not EventType.ISSUED])
    insert(store, [made.events[-1]])
    reports(store, made, 6)
    found = {one.piece: one.explanation for one in queries.trail("n", EVERYTHING).missing}
    assert found["issuance"] == f"issuance not stored: producer {made.producers[0]} lacks 1"
    assert found["completion"].startswith("outcome unknown")


def test_a_missing_issuance_may_be_before_retention(
    store: Store, queries: Queries, made: World
) -> None:
    """A token older than the oldest stored event was issued before retention."""
    replay(made, 60, issued_at=AT - timedelta(days=100))
    insert(store, made.events)
    found = {one.piece: one.explanation for one in queries.trail("n", EVERYTHING).missing}
    assert "before retention" in found["issuance"]


def test_another_tenant_learns_nothing(store: Store, queries: Queries, made: World) -> None:
    """A viewer sees its tenant's presentations and a count of the others', and no other's trail."""
    life(made, nonce="theirs")
    life(made)
    replay(made, 60)
    foreign = made.add(
        EventType.REFUSED,
        AT + timedelta(seconds=70),
        nonce="n",
        tenant="beta",
        token_tenant="acme",
        reason=Reason.WRONG_TENANT,
    )
    insert(store, made.events)
    acme = queries.trail("n", TenantScope.only("acme"))
    assert (len(acme.reuses), acme.reuses_total, acme.withheld) == (1, 2, 1)
    beta = queries.trail("n", TenantScope.only("beta"))
    assert (beta.issuance, beta.acceptance, beta.completions) == (None, None, ())
    assert [one.presentation.event for one in beta.reuses] == [foreign]
    assert beta.reuses[0].differences == ()
    hidden = queries.trail("theirs", TenantScope.only("beta"))
    assert (hidden.trust, hidden.withheld) == (NonceTrust.NONE, 0)
    (only,) = queries.reuses(DAY, TenantScope.only("beta")).reuses
    assert (only.acceptance, only.since_acceptance) == (None, None)


def test_a_nonce_of_the_same_hash_is_told_apart(
    store: Store, queries: Queries, made: World
) -> None:
    """Nonces are looked up by hash and compared as texts: another's events never join a trail."""
    life(made, nonce="twin")
    replay(made, 60, nonce="twin")
    life(made)
    replay(made, 90)
    insert(store, made.events)
    columns = "accepted, occurred_at, event_id, event_type, nonce_trust, known_spent, tenant"
    store.command(
        f"INSERT INTO nonce_trail (nonce_hash, {columns}) SELECT sipHash64('n'), {columns} "
        "FROM nonce_trail WHERE nonce_hash = sipHash64('twin')"
    )
    trail = queries.trail("n", EVERYTHING)
    shown = [trail.issuance, trail.acceptance, *(one.presentation for one in trail.reuses)]
    assert {one.event.nonce for one in shown if one is not None} <= {"n"}
    for reuse in queries.reuses(DAY, EVERYTHING).reuses:
        linked = [one for one in (reuse.issuance, reuse.acceptance) if one is not None]
        assert {one.event.nonce for one in linked} <= {reuse.presentation.event.nonce}


def test_neighbours_are_the_same_callers(store: Store, queries: Queries, made: World) -> None:
    """What else a caller did is within the time asked, of its tenant, and the nearest first."""
    wanted = []
    for minutes in (-90, -10, 20, 1_500):
        event = made.add(
            EventType.ISSUED,
            AT + timedelta(minutes=minutes),
            nonce=f"m{minutes}",
            principal="ana@corp",
            tenant="acme",
        )
        wanted.append(event)
    made.add(EventType.ISSUED, AT, nonce="x", principal="ana@corp", tenant="beta")
    made.add(EventType.ISSUED, AT, nonce="y", principal="eve@corp", tenant="acme")
    issued, accepted = life(made, principal="ana@corp")
    insert(store, made.events)
    insert(store, made.events)
    (page,) = [
        one for one in queries.events(DAY, EVERYTHING, limit=100).events if one.event == issued
    ]
    found = [one.event for one in queries.neighbours(page, EVERYTHING)]
    assert found == [wanted[0], wanted[1], accepted, wanted[2]]
    nearest = queries.neighbours(page, EVERYTHING, limit=2)
    assert [one.event for one in nearest] == [wanted[1], accepted]
    assert queries.neighbours(page, TenantScope.only("beta")) == ()


@pytest.mark.parametrize("nonce", ["", "x" * 65])
def test_what_cannot_be_a_nonce_is_refused(queries: Queries, nonce: str) -> None:
    """An empty or overlong text is not looked for."""
    with pytest.raises(ValueError, match="nonce"):
        queries.trail(nonce, EVERYTHING)


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (1_001, 0), (1, -1), (1, 1_000_001)])
def test_pages_are_bounded(queries: Queries, limit: int, offset: int) -> None:
    """A page too big or too far is refused rather than read."""
    for ask in (queries.events, queries.reuses):
        with pytest.raises(ValueError, match="page"):
            ask(DAY, EVERYTHING, None, limit, offset)
