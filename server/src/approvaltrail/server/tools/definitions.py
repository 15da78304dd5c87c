"""What a tool is, for every surface that offers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from approvaltrail.gate import Plan, Tool
from approvaltrail.server.tools.access import Access

CONFIRMATION: Final[dict[str, dict[str, Any]]] = {
    "confirm": {
        "type": "boolean",
        "default": False,
        "description": "Leave it out for the preflight, which changes nothing. Set it to true to "
        "execute what the user approved after reading the preflight.",
    },
    "confirmTarget": {
        "type": "string",
        "description": "With confirm: the target exactly as the preflight names it.",
    },
    "confirmToken": {
        "type": "string",
        "description": "With confirm: the token that the preflight returned, unchanged.",
    },
}
"""The arguments of the second step, on every gated tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedTool:
    """A tool that changes something: a preflight first, then the confirmed execution."""

    tool: Tool
    description: str
    arguments: type[BaseModel]
    plan: Callable[[Any, Access], Awaitable[Plan]]
    """Looks up what the arguments mean. A failed look-up raises."""
    execute: Callable[[Plan, Access], Awaitable[dict[str, Any]]]
    """Does what the plan says; it sees the plan alone, never the arguments."""

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name

    @property
    def target(self) -> str | None:
        """It is bound to no target: the caller chooses."""
        return None

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments, those of the second step included."""
        schema = schema_of(self.arguments)
        return schema | {"properties": schema.get("properties", {}) | CONFIRMATION}

    def shown_description(self) -> str:
        """Return the description with what every gated tool needs to say."""
        once = " The token works once." if self.tool.ledgered else ""
        return (
            f"{self.description} Two steps: call it without confirm to get a preflight, let the "
            "user read that, then repeat the call with confirm, confirmTarget and confirmToken."
            f"{once}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeTool:
    """A tool that changes nothing."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[Any, Access], Awaitable[dict[str, Any]]]
    target: str | None = None
    """The cluster that it is bound to; None where the caller chooses."""

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments."""
        return schema_of(self.arguments)

    def shown_description(self) -> str:
        """Return the description."""
        return self.description


ServerTool = GatedTool | FreeTool


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's JSON schema by the names that callers use."""
    schema = model.model_json_schema(by_alias=True)
    schema.pop("title", None)
    schema.pop("description", None)
    for part in schema.get("properties", {}).values():
        part.pop("title", None)
    return {"type": "object", "properties": {}} | schema
