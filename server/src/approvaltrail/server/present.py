"""How an answer looks to a client: text for the model, the same in structured form for code.

The arguments of the second step have other names here than in the gate's own texts, so the end of
the preflight is written here; the plan above it is the gate's.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from mcp_types import CallToolResult, TextContent

from approvaltrail.gate import Preflight, Refusal
from approvaltrail.gate.render import plan_text, quoted, spoken
from approvaltrail.server.dispatch import Answer, Done
from approvaltrail.server.problems import Problem


def mcp_result(answer: Answer) -> CallToolResult:
    """Return the answer as MCP's result of a tool call."""
    return CallToolResult(
        content=[TextContent(type="text", text=text_of(answer))],
        structured_content=structured(answer),
        is_error=isinstance(answer, Refusal | Problem),
    )


def text_of(answer: Answer) -> str:
    """Return the answer's text."""
    match answer:
        case Preflight():
            return preflight_text(answer)
        case Done():
            return json.dumps(dict(answer.result), ensure_ascii=False, indent=2, default=str)
        case Refusal() | Problem():
            return f"{_named(answer.text)} (code: {code_of(answer)})"


def structured(answer: Answer) -> dict[str, Any]:
    """Return the answer's structured form."""
    match answer:
        case Preflight():
            shown = answer.structured()
            return {
                **{key: value for key, value in shown.items() if not key.startswith("confirm_")},
                "confirmTarget": answer.plan.target,
                "confirmToken": answer.token,
            }
        case Done():
            return {
                "refused": False,
                "executed": answer.event_id is not None,
                "result": dict(answer.result),
                "event_id": answer.event_id,
                "completion_recorded": answer.completion_recorded,
            }
        case Refusal():
            return {**answer.structured(), "text": _named(answer.text)}
        case Problem():
            return answer.structured()


def preflight_text(preflight: Preflight) -> str:
    """Return the preflight: the plan as the gate shows it, and how to proceed here."""
    plan = preflight.plan
    target = "" if plan.target is None else f", confirmTarget: {quoted(plan.target)}"
    lifetime: timedelta = preflight.expires_at - preflight.issued_at
    once = ", works once" if preflight.single_use else ""
    return (
        f"{plan_text(plan)}\n\n"
        "To proceed once the user has approved this, call the tool again with the same arguments "
        f"and confirm: true{target}, and confirmToken from this response.\n"
        f"confirmToken: {preflight.token}\n"
        f"(expires in {spoken(lifetime)}{once})"
    )


def _named(text: str) -> str:
    """Call the arguments by their names here; a refusal's text is fixed and holds no payload."""
    return text.replace("confirm_target", "confirmTarget").replace("confirm_token", "confirmToken")


def code_of(answer: Refusal | Problem) -> str:
    """Return the stable code of an answer that is none."""
    return answer.code.value if isinstance(answer, Refusal) else answer.code
