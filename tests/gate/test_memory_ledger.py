"""The bound of the ledger in memory."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from tests.gate.common import DELETE

from approvaltrail.gate import LedgerFullError, MemoryLedger
from approvaltrail.gate.errors import LedgerMisconfiguredError
from approvaltrail.gate.ledger import AlreadySpent, Claim, Claimed
from approvaltrail.gate.testing import GateUnderTest, ManualClock
from approvaltrail.schemas.messages import Probe


def claim(nonce: str, clock: ManualClock) -> Claim:
    """Make a claim of a token issued now."""
    now = clock.now()
    return Claim(
        nonce=nonce,
        claim_id=f"of {nonce}",
        issued_at=now,
        expires_at=now + timedelta(minutes=10),
        tool=DELETE,
    )


def test_a_full_ledger_evicts_no_unexpired_nonce(clock: ManualClock) -> None:
    """G-13: at the bound a new claim is refused and counted; the first nonce is still a replay."""
    ledger = MemoryLedger(clock=clock, capacity=3)
    claims = [claim(f"n{i}", clock) for i in range(4)]
    for fitting in claims[:3]:
        assert isinstance(ledger.claim(fitting), Claimed)
    with pytest.raises(LedgerFullError, match="retry"):
        ledger.claim(claims[3])
    assert ledger.full_refusals == 1
    assert isinstance(ledger.is_spent("n0", claims[0].issued_at), AlreadySpent)
    clock.advance(minutes=12)
    assert isinstance(ledger.claim(claim("n5", clock)), Claimed)


def test_a_forked_child_has_no_ledger_in_memory(clock: ManualClock) -> None:
    """G-07: a copy of the map in a forked child would accept a token that its parent accepted."""
    ledger = MemoryLedger(clock=clock)
    child = os.fork()
    if child == 0:
        try:
            ledger.claim(claim("n1", clock))
        except LedgerMisconfiguredError:
            os._exit(0 if ledger.probe() is Probe.FAILING else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert isinstance(ledger.claim(claim("n1", clock)), Claimed)


async def test_a_full_ledger_refuses_with_its_own_code() -> None:
    """G-13: the caller is told that the ledger is full, and that its token is not spent."""
    gate = GateUnderTest()
    gate = GateUnderTest(ledger=MemoryLedger(clock=gate.clock, capacity=1))
    first = await gate.preflight(DELETE, cluster="a")
    second = await gate.preflight(DELETE, cluster="b")
    await gate.confirm(first)
    refused = await gate.confirm(second)
    assert (refused.code, refused.token_spent, refused.retry_safe) == ("ledger_full", False, True)
    assert (await gate.confirm(first)).code == "already_used"
    assert [plan.target for plan in gate.executed] == ["a"]
