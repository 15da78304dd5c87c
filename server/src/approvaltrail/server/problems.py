"""Answers to calls that cannot be served, in the same terms as the gate's refusals.

Each has a stable code, a text, the next move, whether anything ran, and whether the same call may
be repeated. None repeats what the caller sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from approvaltrail.gate import NextMove
from approvaltrail.schemas.token_shape import without_tokens
from approvaltrail.server.errors import (
    DatabaseOutcomeError,
    DatabaseRefusedError,
    DatabaseSilentError,
    PlatformOutcomeError,
    PlatformRefusedError,
    PlatformRejectedError,
    PlatformSilentError,
    ToolProblemError,
)

_NAME_CHARACTERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a call was not served."""

    code: str
    text: str
    next_move: NextMove
    status: int
    """The HTTP status under which REST answers."""
    retry_safe: bool = False
    nothing_executed: bool | None = True
    """None where the work was begun and its end is not known."""
    token_spent: bool | None = None
    event_id: str | None = None

    def structured(self) -> dict[str, Any]:
        """Return the problem for a structured result; the keys are a refusal's."""
        return {
            "refused": True,
            "code": self.code,
            "text": self.text,
            "next_move": self.next_move.value,
            "nothing_executed": self.nothing_executed,
            "retry_safe": self.retry_safe,
            "token_spent": self.token_spent,
            "event_id": self.event_id,
        }


UNKNOWN_TOOL = Problem(
    code="unknown_tool",
    text="There is no tool of this name here. Nothing was executed; list the tools and use one.",
    next_move=NextMove.STOP,
    status=404,
)
INTERNAL = Problem(
    code="internal_error",
    text="The server failed while it served this call. Nothing was executed; ask its operator.",
    next_move=NextMove.STOP,
    status=500,
)
ODD_CONFIRM = Problem(
    code="invalid_arguments",
    text="confirm is neither true nor false. Nothing was executed; send true to execute what the "
    "user approved, or leave it out for a preflight.",
    next_move=NextMove.CORRECT_ARGUMENTS,
    status=422,
)
FAILED_INSIDE = Problem(
    code="execution_failed",
    text="The confirmed work was begun and the server failed in it. The token is spent. Look "
    "what was done before you run the preflight again.",
    next_move=NextMove.CHECK_THEN_PREFLIGHT,
    status=500,
    nothing_executed=None,
    token_spent=True,
)


def not_found(what: str) -> Problem:
    """Answer that a thing does not exist: a fact, which a retry will not change."""
    return Problem(
        code="not_found",
        text=f"There is no such {what} within the reach of this credential. Nothing was executed; "
        "list what there is and name one of those.",
        next_move=NextMove.CORRECT_ARGUMENTS,
        status=404,
    )


def ambiguous(what: str) -> Problem:
    """Answer that a name fits several things."""
    return Problem(
        code="ambiguous_target",
        text=f"Several {what} have this name. Nothing was executed; give the id instead.",
        next_move=NextMove.CORRECT_ARGUMENTS,
        status=409,
    )


OUTSIDE_BOUNDARY = Problem(
    code="outside_boundary",
    text="This cluster lies outside the boundary of this deployment. Nothing was executed; a "
    "retry cannot succeed.",
    next_move=NextMove.STOP,
    status=403,
)
NO_AUTHORITY = Problem(
    code="no_authority",
    text="No platform credential stands behind this call. Nothing was executed; a retry cannot "
    "succeed. Call with a platform key of your own, or ask the operator to configure one.",
    next_move=NextMove.STOP,
    status=403,
)
TARGET_UNAVAILABLE = Problem(
    code="target_unavailable",
    text="The cluster that this tool is bound to is not available to this deployment. Nothing was "
    "executed. Do not retry and do not ask for another cluster id: the tool has none. Tell the "
    "user that the operator must look at it.",
    next_move=NextMove.STOP,
    status=503,
)


def invalid_arguments(error: ValidationError) -> Problem:
    """Answer which arguments are wrong and how, without repeating a value."""
    found = error.errors(include_input=False, include_context=False, include_url=False)
    lines = sorted({f"{_place(part['loc'])}: {part['type']}" for part in found})
    return Problem(
        code="invalid_arguments",
        text=f"The arguments do not fit the tool's schema ({'; '.join(lines)}). Nothing was "
        "executed; correct them and call again.",
        next_move=NextMove.CORRECT_ARGUMENTS,
        status=422,
    )


def _place(location: tuple[int | str, ...]) -> str:
    """Name the argument; an unknown one was named by the caller, so its text is not trusted."""
    text = ".".join(str(part) for part in location)[:_NAME_CHARACTERS]
    return without_tokens(text if text.isprintable() else repr(text)) or "arguments"


def problem_of(error: Exception, *, after_acceptance: bool = False) -> Problem | None:
    """Return the answer to an error that has one of its own, else None.

    Args:
        error: what a look-up or the work raised.
        after_acceptance: the token was spent and the work begun.
    """
    if isinstance(error, ToolProblemError):
        found: Problem | None = error.problem
    else:
        found = _of_seams(error)
    if found is None or not after_acceptance:
        return found
    return _after_acceptance(found, error)


def _of_seams(error: Exception) -> Problem | None:
    match error:
        case PlatformRefusedError() | DatabaseRefusedError():
            return Problem(
                code="target_refused",
                text=f"{error} Nothing was executed; a retry cannot succeed.",
                next_move=NextMove.STOP,
                status=403,
            )
        case PlatformRejectedError():
            return Problem(
                code="platform_rejected",
                text=f"{error} Nothing was executed; correct the arguments.",
                next_move=NextMove.CORRECT_ARGUMENTS,
                status=422,
            )
        case PlatformSilentError() | DatabaseSilentError():
            return Problem(
                code="target_silent",
                text=f"{error} Nothing was executed; retry shortly.",
                next_move=NextMove.RETRY_SHORTLY,
                status=503,
                retry_safe=True,
            )
        case PlatformOutcomeError() | DatabaseOutcomeError():
            return Problem(
                code="outcome_unknown",
                text=f"{error} The work may be done or not: look before you repeat it.",
                next_move=NextMove.CHECK_THEN_PREFLIGHT,
                status=504,
                nothing_executed=None,
            )
        case _:
            return None


def _after_acceptance(found: Problem, error: Exception) -> Problem:
    """Turn an answer that advises a retry into one that does not: the token was accepted."""
    unknown = isinstance(error, PlatformOutcomeError | DatabaseOutcomeError)
    move = NextMove.CHECK_THEN_PREFLIGHT if unknown else NextMove.RUN_PREFLIGHT
    text = found.text.replace("; retry shortly", "").replace("; correct the arguments", "")
    return replace(
        found,
        text=f"{text} This token was accepted; another attempt needs a new preflight.",
        next_move=NextMove.STOP if found.next_move is NextMove.STOP else move,
        retry_safe=False,
    )
