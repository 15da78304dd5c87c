"""The gate's events, one function a type. No function takes a token into an event.

Every text may be hostile, so events are built by `event_from_untrusted`, which cannot fail for what
a caller sent and removes the token in hand from any field it was smuggled into.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from approvaltrail.gate.attempt import Acceptance, Attempt
from approvaltrail.gate.caller import Caller
from approvaltrail.gate.ledger.protocol import AlreadySpent
from approvaltrail.gate.plan import Plan
from approvaltrail.gate.tokens import TOKEN_CHARACTERS, Claims
from approvaltrail.gate.tools import Tool
from approvaltrail.gate.verify import Failed, Verified
from approvaltrail.schemas import EventType, NonceTrust, Outcome, Reason
from approvaltrail.schemas.sanitise import Sanitised, event_from_untrusted
from approvaltrail.schemas.token_shape import parts_of


def issued(
    event_id: str, tool: Tool, caller: Caller, claims: Claims, plan: Plan, token: str
) -> Sanitised:
    """Build the event of an issuance."""
    values = _call(event_id, EventType.ISSUED, claims.issued_at, tool, caller)
    values |= _plan(plan, claims.plan_hash) | _signed(claims)
    if tool.summary_recorded:
        values["plan_summary"] = plan.summary
    return _event(values, token)


def not_issued(event_id: str, at: datetime, tool: Tool, caller: Caller) -> Sanitised:
    """Build the event, to be counted, of an issuance that could not be recorded."""
    values = _call(event_id, EventType.REFUSED, at, tool, caller)
    return _event(values | {"reason": Reason.NOT_RECORDED}, None)


def refused(event_id: str, at: datetime, attempt: Attempt, failed: Failed) -> Sanitised:
    """Build the event of a refusal: with what was known when the first check failed."""
    values = _of_attempt(event_id, EventType.REFUSED, at, attempt)
    values["reason"] = failed.reason
    plan = failed.plan or (attempt.plan if isinstance(attempt.plan, Plan) else None)
    if plan is not None:
        values |= _plan(plan, failed.plan_hash)
    if failed.claims is not None:
        values |= _signed(failed.claims) | _differences(failed.claims, values)
    elif failed.claimed_nonce is not None:
        values |= {"nonce": failed.claimed_nonce, "nonce_trust": NonceTrust.CLAIMED}
    if failed.detail is not None:
        values["attributes"] = {"detail": failed.detail}
    return _event(values, attempt.token)


def accepted(event_id: str, at: datetime, attempt: Attempt, verified: Verified) -> Sanitised:
    """Build the event of an acceptance."""
    values = _of_attempt(event_id, EventType.ACCEPTED, at, attempt)
    values |= _plan(verified.plan, verified.plan_hash) | _signed(verified.claims)
    return _event(values, attempt.token)


def replayed(
    event_id: str, at: datetime, attempt: Attempt, verified: Verified, spent: AlreadySpent
) -> Sanitised:
    """Build the event of a replay, which carries when and by which claim the nonce was spent."""
    values = _of_attempt(event_id, EventType.REPLAYED, at, attempt)
    values |= _plan(verified.plan, verified.plan_hash) | _signed(verified.claims)
    values |= {
        "reason": Reason.ALREADY_USED,
        "spent_at": spent.spent_at,
        "spent_claim_id": spent.claim_id,
    }
    return _event(values, attempt.token)


def completed(
    event_id: str, at: datetime, acceptance: Acceptance, outcome: Outcome, detail: str | None
) -> Sanitised:
    """Build the event of accepted work's end."""
    attempt, verified = acceptance.attempt, acceptance.verified
    values = _of_attempt(event_id, EventType.COMPLETED, at, attempt)
    values |= _plan(verified.plan, verified.plan_hash) | _signed(verified.claims)
    values |= {"outcome": outcome, "acceptance_id": acceptance.event_id}
    if detail is not None:
        values["attributes"] = {"detail": detail}
    return _event(values, attempt.token)


def _of_attempt(event_id: str, kind: EventType, at: datetime, attempt: Attempt) -> dict[str, Any]:
    return _call(event_id, kind, at, attempt.tool, attempt.caller)


def _call(
    event_id: str, kind: EventType, at: datetime, tool: Tool, caller: Caller
) -> dict[str, Any]:
    return {
        "event_id": event_id,
        "event_type": kind,
        "occurred_at": at,
        "tool": tool.name,
        "action": tool.action,
        "ledgered": tool.ledgered,
        **caller.values(),
    }


def _plan(plan: Plan, found: str | None) -> dict[str, Any]:
    return {"target": plan.target, "action": plan.action, "plan_hash": found}


def _signed(claims: Claims) -> dict[str, Any]:
    return {
        "nonce": claims.nonce,
        "nonce_trust": NonceTrust.VERIFIED,
        "issued_at": claims.issued_at,
        "expires_at": claims.expires_at,
        "key_id": claims.key_id,
    }


def _differences(claims: Claims, call: dict[str, Any]) -> dict[str, Any]:
    """Return what the signature says otherwise than the call; what is not known does not differ."""
    signed = {"token_tenant": claims.tenant, "token_tool": claims.tool}
    if "target" in call:
        signed["token_target"] = claims.target
    if call.get("plan_hash") is not None:
        signed["token_plan_hash"] = claims.plan_hash
    return {
        name: value for name, value in signed.items() if value != call[name.removeprefix("token_")]
    }


def _event(values: dict[str, Any], token: object) -> Sanitised:
    parts = parts_of(token[:TOKEN_CHARACTERS]) if isinstance(token, str) else ()
    return event_from_untrusted(values, parts)
