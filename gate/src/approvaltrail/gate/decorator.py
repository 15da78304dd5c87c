"""A function behind the gate: `@gate.confirmed(plan=plan_delete)`.

The decorated function takes the approved plan and nothing else. Callers see the parameters of the
function that makes the plan, and three more: `confirm`, `confirm_target`, `confirm_token`, or as
`ConfirmArguments` names them. Called without `confirm` it answers with a `Preflight`; with it, with
the function's own result; whatever is refused, with a `Refusal`. `present` turns any of the three
into what a transport wants.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from approvaltrail.gate.arguments import DEFAULT_ARGUMENTS, ConfirmArguments
from approvaltrail.gate.attempt import Confirmed, Preflight
from approvaltrail.gate.errors import PlanError, PreflightRefusedError
from approvaltrail.gate.refusals import Refusal
from approvaltrail.gate.tools import Tool

if TYPE_CHECKING:
    from approvaltrail.gate.gate import Gate

Decorate = Callable[[Callable[..., Any]], Callable[..., Any]]


def decorator(
    gate: Gate,
    *,
    plan: Callable[..., Any],
    single_use: bool | None,
    tool: str | None,
    present: Callable[[Any], Any] | None,
    arguments: ConfirmArguments = DEFAULT_ARGUMENTS,
) -> Decorate:
    """Return the decorator.

    Args:
        gate: the gate.
        plan: makes the plan from the tool's arguments; plain or asynchronous.
        single_use: whether a token works once; unset takes what the table says, and True for a
            tool that is not in it.
        tool: the tool's name; unset takes the function's.
        present: turns a `Preflight`, `Refusal` or result into the transport's answer.
        arguments: what the three arguments of a confirm are called.

    Raises:
        PlanError: the table says otherwise than `single_use`, a plain function has an
            asynchronous plan, or the plan has a parameter called like one of the three.
    """
    show = present or (lambda answer: answer)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        row = _tool(gate, tool or function.__name__, single_use)
        if inspect.iscoroutinefunction(function):
            gated = _asynchronous(gate, row, plan, function, show, arguments)
        elif inspect.iscoroutinefunction(plan):
            raise PlanError(f"{row.name} is a plain function, its plan is not; make both alike")
        else:
            gated = _plain(gate, row, plan, function, show, arguments)
        return _dressed(gated, function, plan, present, arguments)

    return decorate


def _tool(gate: Gate, name: str, single_use: bool | None) -> Tool:  # noqa: FBT001 - private
    row = gate.tools.get(name)
    if row is None:
        once = single_use is not False
        return Tool(name=name, action=name, ledgered=once, reversible=False)
    if single_use is not None and single_use is not row.ledgered:
        raise PlanError(f"the gate's table says otherwise on whether tokens of {name} work once")
    return row


def _asynchronous(
    gate: Gate,
    tool: Tool,
    plan: Callable[..., Any],
    function: Callable[..., Any],
    show: Callable[[Any], Any],
    arguments: ConfirmArguments,
) -> Callable[..., Any]:
    async def gated(*given: Any, **named: Any) -> Any:
        confirm, target, token = arguments.take(named)
        source = functools.partial(plan, *given, **named)
        if not confirm:
            try:
                return show(await gate.preflight(tool, source, arguments=arguments))
            except PreflightRefusedError as error:
                return show(error.refusal)
        return show(
            _result(await gate.confirm(tool, source, token, function, confirm_target=target))
        )

    return gated


def _plain(
    gate: Gate,
    tool: Tool,
    plan: Callable[..., Any],
    function: Callable[..., Any],
    show: Callable[[Any], Any],
    arguments: ConfirmArguments,
) -> Callable[..., Any]:
    def gated(*given: Any, **named: Any) -> Any:
        confirm, target, token = arguments.take(named)
        source = functools.partial(plan, *given, **named)
        if not confirm:
            try:
                return show(gate.preflight_sync(tool, source, arguments=arguments))
            except PreflightRefusedError as error:
                return show(error.refusal)
        return show(
            _result(gate.confirm_sync(tool, source, token, function, confirm_target=target))
        )

    return gated


def _result(answer: Confirmed[Any] | Refusal | Preflight) -> Any:
    return answer.result if isinstance(answer, Confirmed) else answer


def _dressed(
    gated: Callable[..., Any],
    function: Callable[..., Any],
    plan: Callable[..., Any],
    present: Callable[[Any], Any] | None,
    arguments: ConfirmArguments,
) -> Callable[..., Any]:
    """Give the wrapper the function's name and the plan's parameters, as frameworks read them."""
    functools.update_wrapper(gated, function)
    del gated.__dict__["__wrapped__"]  # or signatures would be read from the function
    signature = inspect.signature(plan, eval_str=True)
    last = [p for p in signature.parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD]
    rest = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    answer: Any = inspect.Signature.empty
    if present is not None:
        answer = inspect.signature(present, eval_str=True).return_annotation
    added = arguments.parameters()
    if clash := {p.name for p in added} & signature.parameters.keys():
        raise PlanError(
            f"the plan has a parameter {min(clash)} of its own; name the gate's otherwise"
        )
    parameters = [*rest, *added, *last]
    gated.__signature__ = inspect.Signature(parameters, return_annotation=answer)  # type: ignore[attr-defined]
    annotations = {
        parameter.name: parameter.annotation
        for parameter in parameters
        if parameter.annotation is not inspect.Parameter.empty
    }
    if answer is not inspect.Signature.empty:
        annotations["return"] = answer
    gated.__annotations__ = annotations
    return gated
