"""Refusals: one per reason, because the right next move differs.

A refusal says what happened, what to do next, whether anything ran, whether the same call may be
repeated, and whether the token is spent. Codes are stable; texts may be reworded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from approvaltrail.schemas import Reason


class NextMove(StrEnum):
    """What the caller should do now."""

    RUN_PREFLIGHT = "run_preflight"
    """Run the preflight and have its text approved."""
    CHECK_THEN_PREFLIGHT = "check_then_preflight"
    """Look first whether the work is already done."""
    READ_NEW_PREFLIGHT = "read_new_preflight"
    """Do not retry: run the preflight, and have the user read what changed."""
    CORRECT_ARGUMENTS = "correct_arguments"
    """Repeat the call with the right argument; the token still stands."""
    RETRY_SHORTLY = "retry_shortly"
    """Repeat the very same call after a short wait."""
    STOP = "stop"
    """Not a case for a retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a call was refused; nothing was executed by it."""

    code: Reason
    text: str
    next_move: NextMove
    retry_safe: bool
    """The same call with the same token may be repeated, and may then succeed."""
    token_spent: bool | None = None
    """Whether the token can no longer be used; None where the gate does not know."""
    nothing_executed: bool = True
    event_id: str | None = None
    """The event that records this refusal."""
    recorded: bool = True
    """False where the refusal could only be counted, as the recorder takes no events."""
    cause: Exception | None = field(default=None, repr=False, compare=False)
    """On `plan_unavailable`, what the embedding server's own look-up raised, so that the server can
    answer in its own words. In no event and no structured result."""

    def structured(self) -> dict[str, Any]:
        """Return the refusal for a structured result."""
        return {
            "refused": True,
            "code": self.code.value,
            "text": self.text,
            "next_move": self.next_move.value,
            "nothing_executed": self.nothing_executed,
            "retry_safe": self.retry_safe,
            "token_spent": self.token_spent,
            "event_id": self.event_id,
        }


def _row(
    code: Reason,
    move: NextMove,
    text: str,
    *,
    spent: bool | None = False,
    retry: bool = False,
) -> tuple[Reason, Refusal]:
    refusal = Refusal(code=code, text=text, next_move=move, retry_safe=retry, token_spent=spent)
    return code, refusal


_FRESH: Final = "Run the preflight again and use the token that it returns."

REFUSALS: Final[Mapping[Reason, Refusal]] = MappingProxyType(
    dict(
        (
            _row(
                Reason.MISSING_TOKEN,
                NextMove.RUN_PREFLIGHT,
                "Refused: this call carries no confirmation token, so no preflight was shown for "
                "it. Call the tool without confirm first, let the user read the answer, and then "
                "confirm with its token.",
                spent=None,
            ),
            _row(
                Reason.MALFORMED_TOKEN,
                NextMove.RUN_PREFLIGHT,
                f"Refused: the text given as confirmation token is none. {_FRESH} Pass the token "
                "on unchanged.",
                spent=None,
            ),
            _row(
                Reason.BAD_SIGNATURE,
                NextMove.RUN_PREFLIGHT,
                f"Refused: the confirmation token was not signed by this service. {_FRESH}",
                spent=None,
            ),
            _row(
                Reason.UNKNOWN_KEY,
                NextMove.RUN_PREFLIGHT,
                "Refused: the confirmation token names a signing key that this service does not "
                f"hold; the key was replaced, or the token belongs elsewhere. {_FRESH}",
                spent=None,
            ),
            _row(
                Reason.EXPIRED,
                NextMove.CHECK_THEN_PREFLIGHT,
                "Refused: the confirmation token has expired. If it was confirmed before, the work "
                f"may already be done: look before you repeat it. {_FRESH}",
                spent=None,
            ),
            _row(
                Reason.WRONG_TENANT,
                NextMove.STOP,
                "Refused: the confirmation does not belong to this tenant. A retry cannot succeed.",
                spent=None,
            ),
            _row(
                Reason.WRONG_TOOL,
                NextMove.STOP,
                "Refused: the confirmation token was issued for another tool. A retry cannot "
                "succeed; each tool has a preflight of its own.",
                spent=None,
            ),
            _row(
                Reason.WRONG_TARGET,
                NextMove.STOP,
                "Refused: the confirmation token was issued for another target. Do not retry; if "
                "this target is meant, have the user read a preflight for it.",
                spent=None,
            ),
            _row(
                Reason.PLAN_CHANGED,
                NextMove.READ_NEW_PREFLIGHT,
                "Refused: what this call would do differs from what was approved. Do not retry: "
                "run the preflight and have the user read the new text.",
                spent=None,
            ),
            _row(
                Reason.TARGET_UNCONFIRMED,
                NextMove.CORRECT_ARGUMENTS,
                "Refused: confirm_target does not name the target of the approved plan. Give it "
                "exactly as the preflight shows it.",
                spent=None,
                retry=True,
            ),
            _row(
                Reason.PLAN_UNAVAILABLE,
                NextMove.RETRY_SHORTLY,
                "Refused: what this call would do could not be determined, because a look-up "
                "failed. Nothing was executed; retry shortly.",
                retry=True,
                spent=None,
            ),
            _row(
                Reason.ALREADY_USED,
                NextMove.CHECK_THEN_PREFLIGHT,
                "Refused: the confirmation token was already used. The work may already be done, "
                f"so look before you repeat it. {_FRESH}",
                spent=True,
            ),
            _row(
                Reason.PREDATES_LEDGER,
                NextMove.CHECK_THEN_PREFLIGHT,
                "Refused: the record of used tokens was started anew after this token was issued, "
                "so nobody can say whether it was used. Look whether the work is already done. "
                f"{_FRESH}",
                spent=None,
            ),
            _row(
                Reason.LEDGER_UNAVAILABLE,
                NextMove.RETRY_SHORTLY,
                "Refused: the record of used tokens cannot be reached. Nothing was executed; "
                "retry shortly.",
                spent=None,
                retry=True,
            ),
            _row(
                Reason.LEDGER_FULL,
                NextMove.RETRY_SHORTLY,
                "Refused: the record of used tokens is full. Nothing was executed; retry later, "
                "when older tokens have expired.",
                retry=True,
            ),
            _row(
                Reason.NOT_RECORDED,
                NextMove.RETRY_SHORTLY,
                "Refused: the call could not be recorded, and nothing runs unrecorded. Nothing was "
                "executed; retry shortly.",
                spent=None,
                retry=True,
            ),
            _row(
                Reason.OTHER,
                NextMove.STOP,
                "Refused. Nothing was executed; ask the operator of this service for the cause.",
                spent=None,
            ),
        )
    )
)
"""Every reason's refusal; a test holds the table complete."""

_SPENT_NOW: Final = (
    " The token is spent nevertheless: a new attempt needs a new preflight and its token."
)


def refusal(
    reason: Reason,
    *,
    event_id: str | None = None,
    recorded: bool = True,
    spent_now: bool = False,
) -> Refusal:
    """Return the refusal for a reason.

    Args:
        reason: why.
        event_id: the event that records it.
        recorded: whether that event was recorded.
        spent_now: this very call spent the token before it was refused.
    """
    row = REFUSALS[reason]
    move = row.next_move
    if spent_now and move in {NextMove.RETRY_SHORTLY, NextMove.CORRECT_ARGUMENTS}:
        move = NextMove.RUN_PREFLIGHT
    return Refusal(
        code=reason,
        text=row.text.replace("; retry shortly", "") + _SPENT_NOW if spent_now else row.text,
        next_move=move,
        retry_safe=row.retry_safe and not spent_now,
        token_spent=True if spent_now else row.token_spent,
        event_id=event_id,
        recorded=recorded,
    )
