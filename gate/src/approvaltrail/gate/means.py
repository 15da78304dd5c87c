"""What a gate decides with, and how it has a plan made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from approvaltrail.gate.attempt import PlanSource
from approvaltrail.gate.clock import Clock
from approvaltrail.gate.effects import Effects
from approvaltrail.gate.errors import LedgerFullError, PlanError
from approvaltrail.gate.keys import KeyRing
from approvaltrail.gate.ledger.protocol import Ledger
from approvaltrail.gate.plan import Plan
from approvaltrail.gate.tokens import RandomSource
from approvaltrail.gate.tools import Tool
from approvaltrail.schemas import ApprovalEvent, EventRecorder, Reason
from approvaltrail.schemas.sanitise import Sanitised

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a gate decides with."""

    keys: KeyRing
    ledger: Ledger
    recorder: EventRecorder
    clock: Clock
    random: RandomSource
    new_id: Callable[[], str]
    lifetime: timedelta
    tenant_required: bool

    def now(self) -> datetime:
        """Return the present instant."""
        return self.clock.now()

    def told(self, made: Sanitised) -> ApprovalEvent:
        """Return the event; say so where a token was removed from its values."""
        if made.scrubbed:
            event_id = made.event.event_id
            _log.warning("event_field_scrubbed", event_id=event_id, fields=made.scrubbed)
            self.recorder.report_scrubbed(len(made.scrubbed))
        return made.event


async def make_plan(effects: Effects, tool: Tool, source: PlanSource) -> Plan:
    """Return the plan, asking the embedding server for it where it gave a callable.

    Raises:
        PlanError: what came is no plan of this tool.
        Exception: whatever the server's own look-up raised.
    """
    plan = source if isinstance(source, Plan) else await effects.call(source)
    if not isinstance(plan, Plan):
        raise PlanError(f"the plan of {tool.name} is a {type(plan).__name__}, not a Plan")
    if plan.tool != tool.name:
        raise PlanError(f"the plan of {tool.name} names another tool; name this one")
    return plan


def ledger_reason(error: Exception) -> Reason:
    """Return the reason for which a ledger's error refuses."""
    return Reason.LEDGER_FULL if isinstance(error, LedgerFullError) else Reason.LEDGER_UNAVAILABLE
