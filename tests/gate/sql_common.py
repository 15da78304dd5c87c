"""What the tests of the SQL ledger share."""

from __future__ import annotations

from datetime import timedelta

from tests.gate.common import DELETE, SECRET, settings

from approvaltrail.gate import Deployment, Gate
from approvaltrail.gate.ledger import Claim
from approvaltrail.gate.ledger.sql_engine import Waits
from approvaltrail.gate.testing import EventLog, ManualClock

WAITS = Waits(connect_seconds=2, answer_seconds=4, busy_seconds=2, connections=2)
NO_SKEW = timedelta(0)


def claim(clock: ManualClock, nonce: str = "n1", claim_id: str = "c1") -> Claim:
    """Make a claim of a token issued now."""
    now = clock.now()
    return Claim(
        nonce=nonce,
        claim_id=claim_id,
        issued_at=now,
        expires_at=now + timedelta(minutes=10),
        tool=DELETE,
    )


def remote(dsn: str, clock: ManualClock) -> Gate:
    """Make the gate of a writable remote."""
    return Gate(
        settings(confirm_secret=SECRET, control_dsn=dsn, deployment=Deployment.REMOTE),
        recorder=EventLog(),
        clock=clock,
    )
