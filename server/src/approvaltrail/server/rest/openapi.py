"""The OpenAPI document of the REST router, made from the tools on offer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from approvaltrail.server.rest.problem_json import MEDIA_TYPE
from approvaltrail.server.tools.definitions import GatedTool, ServerTool

_PROBLEM: Final = {"$ref": "#/components/schemas/Problem"}
_PROBLEM_SCHEMA: Final = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stable; decide by it."},
        "next_move": {"type": "string"},
        "nothing_executed": {"type": ["boolean", "null"]},
        "retry_safe": {"type": "boolean"},
        "token_spent": {"type": ["boolean", "null"]},
        "event_id": {"type": ["string", "null"]},
    },
}


def openapi_document(tools: Iterable[ServerTool], *, title: str, version: str) -> dict[str, Any]:
    """Return the document, in OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "servers": [{"url": "/v1"}],
        "security": [{"bearer": []}, {"key": []}],
        "paths": {f"/tools/{tool.name}": {"post": _operation(tool)} for tool in tools},
        "components": {
            "schemas": {"Problem": _PROBLEM_SCHEMA},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "A platform key of the caller's own: public and private part.",
                },
            },
        },
    }


def _operation(tool: ServerTool) -> dict[str, Any]:
    answers = {"200": {"description": "Done.", "content": _json({"type": "object"})}}
    if isinstance(tool, GatedTool):
        answers["200"]["description"] = "The preflight, or the confirmed work's result."
    problem = {"description": "Not served.", "content": {MEDIA_TYPE: {"schema": _PROBLEM}}}
    return {
        "operationId": tool.name,
        "description": tool.shown_description(),
        "requestBody": {"required": True, "content": _json(tool.input_schema())},
        "responses": answers | {"default": problem},
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
