"""One call of one tool, for whatever surface it came in by.

A confirm is always put to the gate, however wrong its other arguments are, so that every attempt
is decided in the one order and leaves one event. `confirm` counts as given unless it plainly says
no: a strange value must not slip past the record. It executes only where it plainly says yes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import structlog
from pydantic import BaseModel, ValidationError

from approvaltrail.gate import (
    Acceptance,
    Gate,
    Plan,
    PlanError,
    Preflight,
    PreflightRefusedError,
    Refusal,
)
from approvaltrail.schemas import Outcome, Reason
from approvaltrail.server.errors import (
    DatabaseOutcomeError,
    DatabaseSilentError,
    PlatformOutcomeError,
    ToolProblemError,
)
from approvaltrail.server.problems import (
    FAILED_INSIDE,
    INTERNAL,
    ODD_CONFIRM,
    TARGET_UNAVAILABLE,
    UNKNOWN_TOOL,
    Problem,
    invalid_arguments,
    problem_of,
)
from approvaltrail.server.request import Presence
from approvaltrail.server.tools.access import AbsentError, Access
from approvaltrail.server.tools.definitions import FreeTool, GatedTool
from approvaltrail.server.tools.planning import absent
from approvaltrail.server.tools.toolbox import Toolbox

_PLAINLY_NO: Final = (None, False, "", "false")
_PLAINLY_YES: Final = (True, "true")
_UNKNOWN_OUTCOMES: Final = (PlatformOutcomeError, DatabaseOutcomeError)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The tool did its work; `event_id` is the accepting event's, on a gated tool."""

    result: Mapping[str, Any]
    event_id: str | None = None
    completion_recorded: bool | None = None


Answer = Done | Preflight | Refusal | Problem


class Dispatcher:
    """Serves calls."""

    def __init__(self, gate: Gate, toolbox: Toolbox) -> None:
        self._gate = gate
        self._toolbox = toolbox

    async def call(
        self, name: str, arguments: Mapping[str, Any], presence: Presence, access: Access
    ) -> Answer:
        """Call a tool; never raises for what a caller sent or a target answered."""
        match self._toolbox.named(name):
            case None:
                return UNKNOWN_TOOL
            case FreeTool() as tool:
                return await self._free(tool, arguments, access)
            case GatedTool() as tool:
                return await _Gated(self._gate, tool, presence, access).call(arguments)

    async def _free(
        self, tool: FreeTool, arguments: Mapping[str, Any], access: Access
    ) -> Done | Problem:
        if not self._toolbox.targets.available(tool.target):
            return TARGET_UNAVAILABLE
        try:
            given = tool.arguments.model_validate(arguments)
            return Done(result=await tool.run(given, access))
        except ValidationError as error:
            return invalid_arguments(error)
        except Exception as error:  # noqa: BLE001 - whatever a look-up raises, the caller gets an answer
            if tool.target is not None and isinstance(error, DatabaseSilentError):
                self._toolbox.targets.silence(tool.target)
            return _answer(error, tool.name) or INTERNAL


class _Gated:
    """One call of a gated tool."""

    def __init__(self, gate: Gate, tool: GatedTool, presence: Presence, access: Access) -> None:
        self._gate = gate
        self._tool = tool
        self._caller = presence.caller
        self._access = access
        self._problem: Problem | None = None

    async def call(self, arguments: Mapping[str, Any]) -> Answer:
        """Run the step that the arguments ask for."""
        rest = dict(arguments)
        confirm, target, token = (
            rest.pop(name, None) for name in ("confirm", "confirmTarget", "confirmToken")
        )
        given = self._read(rest)
        if any(confirm is no or confirm == no for no in _PLAINLY_NO):
            return await self._preflight(given)
        if confirm not in _PLAINLY_YES:
            given = ODD_CONFIRM
        accepted = await self._gate.accept(
            self._tool.tool,
            lambda: self._plan_to_confirm(given),
            cast("str | None", token),  # the gate answers a token that is no text
            confirm_target=target if isinstance(target, str) else "",
            caller=self._caller,
        )
        if isinstance(accepted, Refusal):
            return self._refused(accepted)
        return await self._execute(accepted)

    def _read(self, arguments: Mapping[str, Any]) -> BaseModel | Problem:
        try:
            return self._tool.arguments.model_validate(arguments)
        except ValidationError as error:
            return invalid_arguments(error)

    async def _preflight(self, given: BaseModel | Problem) -> Answer:
        if isinstance(given, Problem):
            return given
        try:
            return await self._gate.preflight(
                self._tool.tool, lambda: self._tool.plan(given, self._access), caller=self._caller
            )
        except PreflightRefusedError as error:
            cause = error.__cause__
            own = _answer(cause, self._tool.name) if isinstance(cause, Exception) else None
            return own if own is not None and own is not INTERNAL else error.refusal
        except PlanError as error:
            return _unplannable(error)

    async def _plan_to_confirm(self, given: BaseModel | Problem) -> Plan:
        """Make the plan again; a target that is gone by now is a fact, and a changed plan."""
        if isinstance(given, Problem):
            self._problem = given
            raise ToolProblemError(given)
        try:
            return await self._tool.plan(given, self._access)
        except AbsentError as error:
            return absent(self._tool.name, error.given)
        except Exception as error:
            self._problem = _answer(error, self._tool.name)
            raise

    def _refused(self, refusal: Refusal) -> Refusal | Problem:
        """Say why the plan could not be made, where the server knows more than the gate."""
        if refusal.code is not Reason.PLAN_UNAVAILABLE or self._problem is None:
            return refusal
        return replace(self._problem, event_id=refusal.event_id, token_spent=refusal.token_spent)

    async def _execute(self, accepted: Acceptance) -> Done | Problem:
        try:
            result = await self._tool.execute(accepted.plan, self._access)
        except GeneratorExit:  # the event loop let go of this call: nothing can be awaited now
            raise
        except Exception as error:  # noqa: BLE001 - whatever the work raises, its end is recorded
            unknown = isinstance(error, _UNKNOWN_OUTCOMES)
            await self._gate.complete(accepted, Outcome.UNKNOWN if unknown else Outcome.FAILED)
            return self._failed(error, accepted)
        except BaseException:  # a cancellation, an exit: the work was cut off somewhere
            await self._gate.complete(accepted, Outcome.UNKNOWN)
            raise
        recorded = await self._gate.complete(accepted, Outcome.SUCCEEDED)
        return Done(result=result, event_id=accepted.event_id, completion_recorded=recorded)

    def _failed(self, error: Exception, accepted: Acceptance) -> Problem:
        found = problem_of(error, after_acceptance=True)
        if found is None:
            _log.error("execution_failed", tool=self._tool.name, error=type(error).__name__)
            found = FAILED_INSIDE
        spent = True if self._tool.tool.ledgered else None
        return replace(found, event_id=accepted.event_id, token_spent=spent)


def _answer(error: Exception, tool: str) -> Problem:
    found = problem_of(error)
    if found is None:
        _log.error("call_failed", tool=tool, error=type(error).__name__)
        return INTERNAL
    return found


def _unplannable(error: PlanError) -> Problem:
    """Answer arguments of which no plan can be made: too large, mostly."""
    return Problem(
        code="plan_rejected",
        text=f"No preflight can be made of these arguments: {error}. Nothing was executed.",
        next_move=INTERNAL.next_move,
        status=422,
    )
