"""What the ledger spent and what the record accepted are compared, both ways."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.gate.common import DELETE, EXECUTE, DyingLog, plan, shared_gate
from tests.gate.places import AnyLedger, LedgerPlace

from approvaltrail.gate import Gate
from approvaltrail.gate.ledger import Claim, MemoryLedger
from approvaltrail.gate.reconcile import Reconciliation, reconcile
from approvaltrail.gate.testing import EventLog, ManualClock
from approvaltrail.schemas import ApprovalEvent, Reason


class Bench:
    """A gate, its ledger and its record, with a comparison of the two."""

    def __init__(self, ledger: AnyLedger, clock: ManualClock) -> None:
        self.ledger, self.clock, self.start = ledger, clock, clock.now()
        self.events = EventLog()
        secret: dict[str, Any] = {}
        if isinstance(ledger, MemoryLedger):
            secret["confirm_secret"] = None
        self.secret = secret
        self.gate = self.another(self.events)

    def another(self, events: EventLog) -> Gate:
        """Make a gate on the same ledger."""
        return shared_gate(events, self.ledger, self.clock, **self.secret)

    def confirm(self, gate: Gate | None = None, tool: str = DELETE) -> Any:
        """Issue and confirm one token."""
        gate = gate or self.gate
        token = gate.preflight_sync(tool, plan(tool)).token
        return gate.confirm_sync(tool, plan(tool), token, lambda _: None)

    def compare(
        self, events: list[ApprovalEvent] | None = None, until: datetime | None = None
    ) -> Reconciliation:
        """Compare everything, an hour later."""
        record = self.events if events is None else events
        now = self.clock.now() + timedelta(hours=1)
        return reconcile(self.ledger, record, start=self.start, end=until or now, now=now)


@pytest.fixture
def bench(place: LedgerPlace, clock: ManualClock) -> Iterator[Bench]:
    """Give a bench on each kind of ledger."""
    made = Bench(place.open(clock), clock)
    yield made
    made.ledger.close()


def test_a_whole_record_agrees(bench: Bench) -> None:
    """X4: every claim has its acceptance, whatever else was refused, replayed or not ledgered."""
    for _ in range(3):
        bench.confirm()
        bench.clock.advance(seconds=1)
    bench.confirm(tool=EXECUTE)
    token = bench.gate.preflight_sync(DELETE, plan()).token
    for _ in range(3):
        bench.gate.confirm_sync(DELETE, plan(), token, lambda _: None)
    found = bench.compare([*bench.events, *bench.events])
    assert found.agrees
    assert (found.matched, found.unsettled, found.explained) == (4, 0, ())


def test_a_spend_that_nobody_recorded_is_named(bench: Bench) -> None:
    """X4: a crash between claim and record leaves a spend, which the comparison names."""
    bench.confirm()
    lost = Claim(
        nonce="lost",
        claim_id="0190f8b2-0000-7000-8000-000000000001",
        issued_at=bench.clock.now(),
        expires_at=bench.clock.now() + timedelta(minutes=10),
        tool=DELETE,
    )
    bench.ledger.claim(lost)
    found = bench.compare()
    assert [claim.claim_id for claim in found.spent_not_recorded] == [lost.claim_id]
    assert not found.agrees
    assert found.matched == 1


def test_an_acceptance_that_spent_nothing_is_named(bench: Bench) -> None:
    """X4: an acceptance whose claim the ledger lacks is named."""
    bench.confirm()
    elsewhere = Bench(MemoryLedger(clock=bench.clock), bench.clock)
    done = elsewhere.confirm()
    found = bench.compare([*bench.events, *elsewhere.events])
    assert [one.event_id for one in found.recorded_not_spent] == [done.event_id]
    assert (found.agrees, found.matched) == (False, 1)


def test_a_nonce_accepted_by_another_event_is_a_contradiction(bench: Bench) -> None:
    """X4: two acceptances of one nonce cannot both be the claim's."""
    bench.confirm()
    accepted = bench.events[1]
    other = accepted.model_copy(update={"event_id": "0190f8b2-0000-7000-8000-000000000002"})
    [found] = bench.compare([*bench.events, other]).contradictions
    assert (found.claim.claim_id, found.acceptance.event_id) == (accepted.event_id, other.event_id)


def test_a_spend_that_was_refused_is_explained(bench: Bench) -> None:
    """X3: a token spent by a call that could not be recorded shows with that refusal's reason."""
    dying = DyingLog()
    refused = bench.confirm(bench.another(dying))
    assert refused.code is Reason.NOT_RECORDED
    found = bench.compare([*dying.recorded, *dying.unrecorded])
    [explained] = found.explained
    assert (explained.claim.claim_id, explained.reason) == (refused.event_id, Reason.NOT_RECORDED)
    assert found.agrees
    assert len(bench.compare(dying.recorded).spent_not_recorded) == 1


def test_what_is_still_on_its_way_is_not_judged(bench: Bench) -> None:
    """X4: a claim and an acceptance of a moment ago may have their counterpart in flight."""
    bench.confirm()
    elsewhere = Bench(MemoryLedger(clock=bench.clock), bench.clock)
    elsewhere.confirm()
    now = bench.clock.now()
    found = reconcile(
        bench.ledger,
        elsewhere.events,
        start=bench.start,
        end=now + timedelta(seconds=1),
        now=now + timedelta(minutes=1),
    )
    assert (found.agrees, found.unsettled, found.matched) == (True, 2, 0)


def test_what_the_ledger_may_have_dropped_is_not_provable(bench: Bench) -> None:
    """X4: acceptances older than the ledger, or than its pruning, are said to be not provable."""
    bench.confirm()
    bench.clock.advance(minutes=30)
    bench.confirm()
    found = bench.compare()
    assert bench.ledger.pruned_until > bench.start
    assert [one.event_id for one in found.not_provable] == [bench.events[1].event_id]
    assert (found.agrees, found.matched) == (True, 1)
    old = bench.events[1].model_copy(update={"issued_at": bench.start - timedelta(days=1)})
    assert len(bench.compare([old, *list(bench.events)[3:]]).not_provable) == 1


def test_the_range_is_half_open(bench: Bench) -> None:
    """X4: what was spent at the end of the range belongs to the next one."""
    bench.confirm()
    bench.clock.advance(minutes=1)
    bench.confirm()
    found = bench.compare(until=bench.clock.now())
    assert (found.agrees, found.matched, found.unsettled) == (True, 1, 0)
