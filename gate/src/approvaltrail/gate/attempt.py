"""What goes into the gate and what comes out: the values of one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from approvaltrail.gate.caller import Caller
from approvaltrail.gate.plan import Plan
from approvaltrail.gate.tools import Tool
from approvaltrail.gate.verify import Verified

T = TypeVar("T")
PlanSource = Plan | Callable[[], Plan | Awaitable[Plan]]
"""A plan, or what makes it. A callable runs only once the token itself is known to be sound."""
Execute = Callable[[Plan], T | Awaitable[T]]
"""Does the work. It is handed the approved plan and nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One presentation of a token, or of none."""

    tool: Tool
    caller: Caller
    plan: PlanSource
    token: object = field(repr=False)
    confirm_target: str | None = None
    """The target as the caller repeats it; None where the surface does not ask for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The answer to a preflight. The token stands in the text and in the structured form."""

    text: str = field(repr=False)
    token: str = field(repr=False)
    plan: Plan
    plan_hash: str
    nonce: str
    issued_at: datetime
    expires_at: datetime
    single_use: bool
    event_id: str

    def structured(self) -> dict[str, Any]:
        """Return the preflight for a structured result, so that no client must parse prose."""
        return {
            "refused": False,
            "executed": False,
            "plan": self.plan.values(),
            "plan_hash": self.plan_hash,
            "confirm_token": self.token,
            "confirm_target": self.plan.target,
            "expires_at": self.expires_at.isoformat(),
            "single_use": self.single_use,
            "event_id": self.event_id,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The proof that a token was accepted and, on a ledgered tool, spent: execute now, once.

    `Gate.accept` makes it; `Gate.complete` takes it when the work has ended.
    """

    attempt: Attempt = field(repr=False)
    verified: Verified
    event_id: str
    accepted_at: datetime

    @property
    def plan(self) -> Plan:
        """The plan to execute: the very value that was shown and signed."""
        return self.verified.plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed(Generic[T]):
    """The work was accepted and done."""

    result: T
    plan: Plan
    event_id: str
    """The accepting event."""
    completion_recorded: bool
    """False where the end of the work could not be recorded: its outcome then shows as unknown."""
