"""A confirm: what is shown is what runs, for whom it was issued, once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.gate.common import DELETE, EXECUTE, plan, shared_gate

from approvaltrail.gate import (
    Caller,
    Confirmed,
    MemoryLedger,
    Plan,
    PlanError,
    SqliteLedger,
)
from approvaltrail.gate.errors import (
    TenantRequiredError,
    UnknownToolError,
)
from approvaltrail.gate.ledger import Claim
from approvaltrail.gate.settings import Deployment
from approvaltrail.gate.testing import EventLog, GateUnderTest, ManualClock, plan_of
from approvaltrail.schemas import NonceTrust, Reason


async def test_a_second_delete_is_a_replay(gate: GateUnderTest) -> None:
    """The example of embedding: issue, accept, come back from elsewhere."""
    token = await gate.preflight(DELETE, cluster="prod-7")
    await gate.confirm(token)
    gate.clock.advance(seconds=40)
    assert (await gate.confirm(token, address="203.0.113.9")).code == "already_used"
    assert gate.events.types == ["issued", "accepted", "completed", "replayed"]


async def test_what_is_shown_is_what_runs(gate: GateUnderTest) -> None:
    """G-01, G-03: a value that was clamped or resolved is shown, signed and executed alike."""

    def planned(cluster: str, nodes: int) -> Plan:
        return plan_of(DELETE, target=cluster.strip().lower(), nodes=min(nodes, 50))

    issued = await gate.gate.preflight(DELETE, lambda: planned(" Prod-1 ", 100))
    assert 'Target: "prod-1"' in issued.text
    assert "- nodes: 50" in issued.text
    for spelling in ("prod-1", " Prod-1 "):
        answer = await gate.gate.verify(DELETE, lambda s=spelling: planned(s, 100), issued.token)
        assert not hasattr(answer, "code")
    ran: list[Plan] = []
    await gate.gate.confirm(
        DELETE, lambda: planned("PROD-1", 70), issued.token, ran.append, confirm_target="prod-1"
    )
    assert ran == [issued.plan]
    assert ran[0].details == {"nodes": 50}


class TamperingLedger(MemoryLedger):
    """Changes the plan while the claim is under way, as nothing should be able to."""

    victim: Plan | None = None

    def claim(self, claim: Claim) -> Any:
        """Claim, then tamper."""
        answer = super().claim(claim)
        if self.victim is not None:
            object.__setattr__(self.victim, "target", "prod-8")
        return answer


async def test_a_plan_changed_after_verification_never_runs() -> None:
    """G-02: a change between check and execution is refused, and the refusal says it is spent."""
    clock, events, ran = ManualClock(), EventLog(), []
    ledger = TamperingLedger(clock=clock)
    gate = shared_gate(events, ledger, clock, confirm_secret=None)
    issued = await gate.preflight(DELETE, plan())
    ledger.victim = plan()
    refused = await gate.confirm(DELETE, ledger.victim, issued.token, ran.append)
    assert (refused.code, refused.token_spent, ran) == (Reason.PLAN_CHANGED, True, [])
    assert "spent" in refused.text
    assert events.types == ["issued", "refused"]


async def test_absent_and_empty_tenants_differ(clock: ManualClock) -> None:
    """G-05: no token issued for an absent, empty or named tenant is accepted for another."""
    events = EventLog()
    gate = shared_gate(events, MemoryLedger(clock=clock), clock, confirm_secret=None)
    tenants: list[str | None] = [None, "", "null", "acme"]
    for one in tenants:
        issued = await gate.preflight(EXECUTE, plan(EXECUTE), caller=Caller(tenant=one))
        for other in tenants:
            answer = await gate.confirm(
                EXECUTE, plan(EXECUTE), issued.token, lambda _: 1, caller=Caller(tenant=other)
            )
            assert isinstance(answer, Confirmed) is (one == other)
    refused = [event for event in events if event.reason is Reason.WRONG_TENANT]
    assert len(refused) == 12
    assert {event.token_tenant for event in refused if event.tenant == "acme"} == {None, "null"}


async def test_a_remote_gate_issues_for_a_known_tenant_alone(
    sqlite_ledger: SqliteLedger, clock: ManualClock
) -> None:
    """G-05, G10: without a tenant a remote gate issues nothing and accepts nothing."""
    events, ran = EventLog(), []
    local = shared_gate(events, sqlite_ledger, clock)
    remote = shared_gate(
        events, sqlite_ledger, clock, deployment=Deployment.REMOTE, single_process=True
    )
    for tenant in (None, ""):
        nobody = Caller(tenant=tenant)
        with pytest.raises(TenantRequiredError):
            await remote.preflight(DELETE, plan(), caller=nobody)
        issued = await local.preflight(DELETE, plan(), caller=nobody)
        refused = await remote.confirm(DELETE, plan(), issued.token, ran.append, caller=nobody)
        assert (refused.code, ran) == (Reason.WRONG_TENANT, [])
    assert events.types == ["issued", "refused"] * 2


async def test_an_expired_token_is_called_expired_whatever_was_pruned(gate: GateUnderTest) -> None:
    """G-10, G-11: used or not, pruned or not, an expired token is expired, with a warning."""
    used = await gate.preflight(DELETE, cluster="a")
    unused = await gate.preflight(DELETE, cluster="b")
    await gate.confirm(used)
    gate.clock.advance(minutes=20)
    await gate.confirm(await gate.preflight(DELETE, cluster="c"))  # this claim prunes
    for token in (used, unused):
        refused = await gate.confirm(token)
        assert refused.code is Reason.EXPIRED
        assert "may already be done" in refused.text
        assert gate.events[-1].nonce_trust is NonceTrust.VERIFIED
    assert [done.target for done in gate.executed] == ["a", "c"]


async def test_an_unledgered_tool_accepts_twice(gate: GateUnderTest) -> None:
    """G6, X1: a token of an unledgered tool is not spent; each confirm leaves its events."""
    token = await gate.preflight(EXECUTE, target="prod-7", sql="SELECT 1")
    for _ in range(2):
        assert isinstance(await gate.confirm(token), Confirmed)
    assert gate.events.types == ["issued", "accepted", "completed", "accepted", "completed"]
    assert not any(event.ledgered for event in gate.events)


async def test_a_genuine_rename_refuses(gate: GateUnderTest) -> None:
    """G4: a changed summary or name is a changed plan."""
    token = await gate.preflight(DELETE, cluster="prod-7")
    renamed = replace(plan_of(DELETE, cluster="prod-7"), summary="delete cluster staging")
    refused = await gate.confirm(token, plan=renamed)
    assert (refused.code, refused.next_move) == (Reason.PLAN_CHANGED, "read_new_preflight")


async def test_a_plan_for_another_tool_is_its_makers_error(gate: GateUnderTest) -> None:
    """A plan names the tool it is for; the gate knows its tools by name."""
    with pytest.raises(PlanError):
        await gate.gate.preflight(EXECUTE, plan(DELETE))
    with pytest.raises(PlanError):
        await gate.gate.preflight(EXECUTE, lambda: "no plan")  # type: ignore[arg-type,return-value]
    with pytest.raises(UnknownToolError):
        await gate.gate.preflight("no_such_tool", plan())
