"""Verification, cheapest and most definite first; nothing runs after the first failure.

signature, expiry, tenant, tool (all local, before the plan is even looked up), then target, plan
hash and the caller's own `confirm_target`. The ledger comes last and is not asked here. A forged
token is decided at once and costs neither a look-up nor a database.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import datetime

from approvaltrail.gate.keys import KeyRing
from approvaltrail.gate.plan import Plan, plan_hash
from approvaltrail.gate.tokens import Claims, Unreadable, read
from approvaltrail.schemas import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A sound token, and the plan that it approves; not yet spent."""

    claims: Claims
    plan: Plan
    plan_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The first check that did not hold.

    `claims` are there where the signature held; `claimed_nonce` where it did not. `plan` is there
    where the checks came so far that it was made.
    """

    reason: Reason
    claims: Claims | None = None
    claimed_nonce: str | None = None
    plan: Plan | None = None
    plan_hash: str | None = None
    detail: str | None = None
    cause: Exception | None = None
    """What the embedding server's own look-up raised."""


def check_token(
    token: object, ring: KeyRing, now: datetime, *, tenant: str | None, tool: str
) -> Claims | Failed:
    """Check signature, expiry, tenant and tool, in this order, without any look-up."""
    claims = read(token, ring)
    if isinstance(claims, Unreadable):
        return Failed(reason=claims.reason, claimed_nonce=claims.claimed_nonce)
    if now >= claims.expires_at:
        return Failed(reason=Reason.EXPIRED, claims=claims)
    if not same(claims.tenant, tenant):
        return Failed(reason=Reason.WRONG_TENANT, claims=claims)
    if not same(claims.tool, tool):
        return Failed(reason=Reason.WRONG_TOOL, claims=claims)
    return claims


def check_plan(claims: Claims, plan: Plan, confirm_target: str | None) -> Verified | Failed:
    """Check target, plan hash and, where the surface has it, the repeated target."""
    found = plan_hash(plan)
    reason = _first_difference(claims, plan, found, confirm_target)
    if reason is not None:
        return Failed(reason=reason, claims=claims, plan=plan, plan_hash=found)
    return Verified(claims=claims, plan=plan, plan_hash=found)


def _first_difference(
    claims: Claims, plan: Plan, found: str, confirm_target: str | None
) -> Reason | None:
    if not same(claims.target, plan.target):
        return Reason.WRONG_TARGET
    if not same(claims.plan_hash, found):
        return Reason.PLAN_CHANGED
    if confirm_target is not None and plan.target is not None and confirm_target != plan.target:
        return Reason.TARGET_UNCONFIRMED
    return None


def same(signed: str | None, given: str | None) -> bool:
    """Compare in constant time; absent and empty differ."""
    if signed is None or given is None:
        return signed is given
    return hmac.compare_digest(
        signed.encode("utf-8", "surrogatepass"), given.encode("utf-8", "surrogatepass")
    )
