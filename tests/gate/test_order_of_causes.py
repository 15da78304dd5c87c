"""Several faults at once have one cause: the first in the documented order."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from tests.gate.common import DELETE, plan, shared_gate, token_free

from approvaltrail.gate import Caller, MemoryLedger
from approvaltrail.gate.ledger import Claim
from approvaltrail.gate.testing import EventLog, ManualClock
from approvaltrail.schemas import NonceTrust, Reason

ORDER = {
    "signature": Reason.BAD_SIGNATURE,
    "expiry": Reason.EXPIRED,
    "tenant": Reason.WRONG_TENANT,
    "tool": Reason.WRONG_TOOL,
    "target": Reason.WRONG_TARGET,
    "plan": Reason.PLAN_CHANGED,
    "confirm_target": Reason.TARGET_UNCONFIRMED,
    "spent": Reason.ALREADY_USED,
}
FAULTS = [faults for count in range(1, len(ORDER) + 1) for faults in combinations(ORDER, count)]


class WatchedLedger(MemoryLedger):
    """Counts claims."""

    claims = 0

    def claim(self, claim: Claim) -> Any:
        """Count, then claim."""
        self.claims += 1
        return super().claim(claim)


@pytest.mark.parametrize("faults", FAULTS, ids="+".join)
async def test_the_first_cause_in_order_is_the_only_one(faults: tuple[str, ...]) -> None:
    """G-12, G5: one cause, one event, no execution; the ledger is reached by spent tokens alone."""
    clock, events, planned, executed = ManualClock(), EventLog(), [], []
    ledger = WatchedLedger(clock=clock)
    gate = shared_gate(events, ledger, clock, confirm_secret=None)
    issued = await gate.preflight(DELETE, plan())
    token = issued.token
    if "spent" in faults:
        await gate.confirm(DELETE, plan(), token, lambda _: None, confirm_target="prod-7")
    before, claims_before = len(events), ledger.claims
    if "signature" in faults:
        token = token[:-2] + ("A" if token[-2] != "A" else "B") + token[-1]
    if "expiry" in faults:
        clock.advance(minutes=10)
    tool = "tidb_delete_branch" if "tool" in faults else DELETE
    target = "prod-8" if "target" in faults else "prod-7"
    changes: dict[str, Any] = {"details": {"nodes": 9}} if "plan" in faults else {}

    def made() -> Any:
        planned.append(tool)
        return plan(tool, target, **changes)

    refused = await gate.confirm(
        tool,
        made,
        token,
        executed.append,
        confirm_target="typo" if "confirm_target" in faults else target,
        caller=Caller(tenant="other" if "tenant" in faults else "acme"),
    )
    expected = next(ORDER[name] for name in ORDER if name in faults)
    assert (refused.code, executed) == (expected, [])
    assert len(events) == before + 1
    event = events[-1]
    assert event.reason is expected
    assert event.nonce == (issued.nonce if event.nonce else None)
    trust = NonceTrust.CLAIMED if "signature" in faults else NonceTrust.VERIFIED
    assert event.nonce_trust is trust
    assert ledger.claims - claims_before == (1 if faults == ("spent",) else 0)
    local = {"signature", "expiry", "tenant", "tool"}
    assert bool(planned) is not bool(local & set(faults))
    assert token_free(list(events), issued.token, token)
