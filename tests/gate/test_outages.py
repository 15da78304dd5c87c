"""Ledger, journal and look-ups that fail: closed, distinct, recorded."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.gate.common import DELETE, EXECUTE, DyingLog, plan, shared_gate, token_free
from tests.gate.faulty_sqlite import always_failing

from approvaltrail.gate import (
    Confirmed,
    MemoryLedger,
    Plan,
    PlanUnavailableError,
    SqliteLedger,
    TokenStoreError,
)
from approvaltrail.gate.errors import (
    LedgerNotReadyError,
    NotRecordedError,
)
from approvaltrail.gate.ledger import Claim
from approvaltrail.gate.testing import EventLog, GateUnderTest, ManualClock, plan_of
from approvaltrail.schemas import Reason


class BrokenLedger(MemoryLedger):
    """Cannot be reached."""

    def claim(self, claim: Claim) -> Any:
        """Fail."""
        raise TokenStoreError("unreachable")

    is_spent = claim  # type: ignore[assignment]


async def test_an_unreachable_ledger_locks_the_ledgered_tools_alone(clock: ManualClock) -> None:
    """G7, G9: nothing runs, a retry is safe, and the other tools go on."""
    events, ran = EventLog(), []
    gate = shared_gate(events, BrokenLedger(clock=clock), clock, confirm_secret=None)
    issued = await gate.preflight(DELETE, plan())
    refused = await gate.confirm(DELETE, plan(), issued.token, ran.append)
    assert (refused.code, refused.retry_safe, ran) == (Reason.LEDGER_UNAVAILABLE, True, [])
    assert "Nothing was executed" in refused.text
    open_issue = await gate.preflight(EXECUTE, plan(EXECUTE))
    await gate.confirm(EXECUTE, plan(EXECUTE), open_issue.token, ran.append)
    assert len(ran) == 1
    assert events.types == ["issued", "refused", "issued", "accepted", "completed"]


@pytest.mark.parametrize(
    ("code", "reason", "detail"),
    [
        (sqlite3.SQLITE_BUSY, Reason.LEDGER_UNAVAILABLE, "TokenStoreBusyError"),
        (sqlite3.SQLITE_READONLY, Reason.LEDGER_UNAVAILABLE, "TokenStoreReadOnlyError"),
        (sqlite3.SQLITE_IOERR, Reason.LEDGER_UNAVAILABLE, "TokenStoreError"),
        (sqlite3.SQLITE_CANTOPEN, Reason.LEDGER_UNAVAILABLE, "TokenStoreError"),
        (sqlite3.SQLITE_FULL, Reason.LEDGER_FULL, "LedgerFullError"),
    ],
)
async def test_each_fault_of_the_store_is_recorded_by_its_name(
    clock: ManualClock, tmp_path: Path, code: int, reason: Reason, detail: str
) -> None:
    """S4: busy, read-only, broken and full are refused closed, each with an event that names it."""
    events, ran = EventLog(), []
    ledger = SqliteLedger(tmp_path / "t.db", clock=clock, connection_class=always_failing(code))
    gate = shared_gate(events, ledger, clock)
    issued = await gate.preflight(DELETE, plan())
    refused = await gate.confirm(DELETE, plan(), issued.token, ran.append)
    assert (refused.code, refused.nothing_executed, ran) == (reason, True, [])
    assert events[-1].attributes == (("detail", detail),)
    unledgered = await gate.preflight(EXECUTE, plan(EXECUTE))
    await gate.confirm(EXECUTE, plan(EXECUTE), unledgered.token, ran.append)
    assert len(ran) == 1
    gate.close()


async def test_a_store_that_cannot_be_opened_issues_no_token(clock: ManualClock) -> None:
    """S4: where the store cannot be opened, the preflight of a ledgered tool already refuses."""
    events = EventLog()
    gate = shared_gate(events, SqliteLedger("/proc/no/tokens.db", clock=clock), clock)
    with pytest.raises(LedgerNotReadyError) as caught:
        await gate.preflight(DELETE, plan())
    assert caught.value.refusal.code is Reason.LEDGER_UNAVAILABLE
    assert events.types == []


async def test_a_claim_that_is_rolled_back_leaves_no_acceptance(clock: ManualClock) -> None:
    """S-16: where the ledger did not commit, no acceptance is recorded; the accounts agree."""
    events = EventLog()
    ledger = MemoryLedger(clock=clock)
    gate = shared_gate(events, ledger, clock, confirm_secret=None)
    broken = shared_gate(events, BrokenLedger(clock=clock), clock, confirm_secret=None)
    first, second, third = [await gate.preflight(DELETE, plan()) for _ in range(3)]
    await broken.confirm(DELETE, plan(), second.token, lambda _: None)
    await gate.confirm(DELETE, plan(), first.token, lambda _: None)
    accepted = {event.nonce for event in events if event.event_type == "accepted"}
    spent = {
        issued.nonce
        for issued in (first, second, third)
        if ledger.is_spent(issued.nonce, issued.issued_at)
    }
    assert accepted == spent == {first.nonce}


@pytest.mark.parametrize(("tool", "spent"), [(DELETE, True), (EXECUTE, None)])
async def test_what_cannot_be_recorded_does_not_run(
    clock: ManualClock, tool: str, *, spent: bool | None
) -> None:
    """X3: `not_recorded` says that nothing was executed and, after the claim, what is spent."""
    events, ran = DyingLog(), []
    gate = shared_gate(events, MemoryLedger(clock=clock), clock, confirm_secret=None)
    issued = await gate.preflight(tool, plan(tool))
    refused = await gate.confirm(tool, plan(tool), issued.token, ran.append)
    assert (refused.code, refused.recorded, ran) == (Reason.NOT_RECORDED, False, [])
    assert refused.nothing_executed
    assert refused.token_spent is spent
    assert ("spent" in refused.text) is bool(spent)
    assert refused.retry_safe is not bool(spent)
    assert events.types == ["issued"]
    assert [event.reason for event in events.unrecorded] == [Reason.NOT_RECORDED]


async def test_a_closed_journal_is_noticed_before_the_claim(gate: GateUnderTest) -> None:
    """P1, X3: with the journal closed nothing is issued, claimed or executed; all is counted."""
    token = await gate.preflight(DELETE, cluster="prod-7")
    gate.events.unavailable = True
    refused = await gate.confirm(token)
    assert (refused.code, refused.token_spent) == (Reason.NOT_RECORDED, None)
    with pytest.raises(NotRecordedError):
        await gate.preflight(DELETE, cluster="prod-8")
    forged = await gate.gate.confirm(DELETE, plan(), "random", gate.executed.append)
    assert (forged.code, forged.recorded) == (Reason.MALFORMED_TOKEN, False)
    assert [event.reason for event in gate.events.unrecorded] == [
        Reason.NOT_RECORDED,
        Reason.NOT_RECORDED,
        Reason.MALFORMED_TOKEN,
    ]
    assert token_free(gate.events.unrecorded, token)
    gate.events.unavailable = False
    assert isinstance(await gate.confirm(token), Confirmed)


async def test_a_failed_lookup_is_an_error_and_no_placeholder(gate: GateUnderTest) -> None:
    """G4: a look-up that fails issues nothing, and refuses a confirm without spending."""

    async def unknown() -> Plan:
        raise TimeoutError("the platform did not answer")

    with pytest.raises(PlanUnavailableError) as caught:
        await gate.gate.preflight(DELETE, unknown)
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert gate.events.types == []
    token = await gate.preflight(DELETE, cluster="prod-7")
    refused = await gate.gate.confirm(DELETE, unknown, token, gate.executed.append)
    assert (refused.code, refused.retry_safe) == (Reason.PLAN_UNAVAILABLE, True)
    assert isinstance(await gate.confirm(token), Confirmed)


class SlowLedger(MemoryLedger):
    """Takes eleven minutes to claim."""

    def claim(self, claim: Claim) -> Any:
        """Claim, slowly."""
        answer = super().claim(claim)
        self._clock.advance(minutes=11)  # type: ignore[attr-defined]
        return answer


async def test_a_token_that_expires_during_a_slow_claim_does_not_run(clock: ManualClock) -> None:
    """G7: expiry is looked at again after the claim; the refusal says that the token is spent."""
    events, ran = EventLog(), []
    gate = shared_gate(events, SlowLedger(clock=clock), clock, confirm_secret=None)
    issued = await gate.preflight(DELETE, plan())
    refused = await gate.confirm(DELETE, plan(), issued.token, ran.append)
    assert (refused.code, refused.token_spent, ran) == (Reason.EXPIRED, True, [])


async def test_a_lookup_slower_than_the_token_spends_nothing(gate: GateUnderTest) -> None:
    """G5: a token that expires while its plan is made is refused before the ledger."""
    token = await gate.preflight(DELETE, cluster="prod-7")

    def slow() -> Plan:
        gate.clock.advance(minutes=11)
        return plan_of(DELETE, cluster="prod-7")

    refused = await gate.gate.confirm(DELETE, slow, token, gate.executed.append)
    assert (refused.code, refused.token_spent) == (Reason.EXPIRED, None)
    assert gate.gate.ledger.is_spent(gate.events[0].nonce, gate.events[0].issued_at) is None
