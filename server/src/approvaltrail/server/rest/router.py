"""The router: `POST /v1/tools/NAME` with the tool's arguments as the body.

A caller presents the deployment's static token, for which the deployment's own connections stand,
or a platform key of its own. Then nothing of the deployment's is lent to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from approvaltrail.gate import Refusal
from approvaltrail.server.auth.identity import Identifier
from approvaltrail.server.mcp_server import listed
from approvaltrail.server.present import structured, text_of
from approvaltrail.server.problems import Problem
from approvaltrail.server.request import Presence
from approvaltrail.server.rest.credentials import credential_of
from approvaltrail.server.rest.openapi import openapi_document
from approvaltrail.server.rest.problem_json import document, problem_response
from approvaltrail.server.surface import Surface

MAXIMUM_BODY_BYTES: Final = 256 * 1024


def rest_routes(surface: Surface, identifier: Identifier, *, title: str, version: str) -> BaseRoute:
    """Return the routes under /v1."""
    rest = _Rest(surface, identifier, title=title, version=version)
    return Mount(
        "/v1",
        routes=[
            Route("/openapi.json", rest.openapi, methods=["GET"]),
            Route("/tools", rest.tools, methods=["GET"]),
            Route("/tools/{name}", rest.call, methods=["POST"]),
            Route("/{rest:path}", rest.nothing, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        ],
    )


class _Rest:
    def __init__(
        self, surface: Surface, identifier: Identifier, *, title: str, version: str
    ) -> None:
        self._surface = surface
        self._identifier = identifier
        self._title = title
        self._version = version

    async def openapi(self, _request: Request) -> Response:
        """Return the OpenAPI document; it needs no credential."""
        tools = self._surface.toolbox.offered()
        return JSONResponse(openapi_document(tools, title=self._title, version=self._version))

    async def tools(self, request: Request) -> Response:
        """List the tools on offer."""
        presence = await self._presence(request)
        if presence is None:
            return _unauthorised()
        shown = [
            listed(tool).model_dump(mode="json", by_alias=True, exclude_none=True)
            for tool in self._surface.toolbox.offered()
        ]
        return JSONResponse({"tools": shown}, headers=_headers(presence))

    async def call(self, request: Request) -> Response:
        """Call a tool."""
        presence = await self._presence(request)
        if presence is None:
            return _unauthorised()
        headers = _headers(presence)
        arguments = await _arguments(request)
        if arguments is None:
            return document(
                status=400,
                code="invalid_body",
                detail=f"The body must be a JSON object of at most {MAXIMUM_BODY_BYTES} bytes.",
                headers=headers,
            )
        answer = await self._surface.call(request.path_params["name"], arguments, presence)
        if isinstance(answer, Refusal | Problem):
            return problem_response(answer, headers=headers)
        content = structured(answer) | {"text": text_of(answer)}
        return _Json(content, headers=headers)

    async def nothing(self, _request: Request) -> Response:
        """Answer paths that do not exist."""
        return document(status=404, code="no_such_path", detail="There is nothing at this path.")

    async def _presence(self, request: Request) -> Presence | None:
        credential = credential_of(request)
        if credential is None:
            return None
        identity = await self._identifier.identify(credential)
        if identity is None:
            return None
        return self._surface.callers.of_rest(request, identity, credential)


class _Json(JSONResponse):
    """JSON whose values may be of a database's kinds, and which no cache may keep."""

    def __init__(self, content: Any, headers: Mapping[str, str]) -> None:
        super().__init__(content, headers={**headers, "Cache-Control": "no-store"})

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, default=str).encode()


async def _arguments(request: Request) -> dict[str, Any] | None:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAXIMUM_BODY_BYTES:
            return None
    try:
        read = json.loads(bytes(body) or b"{}")
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _headers(presence: Presence) -> dict[str, str]:
    identity = presence.caller.request_id
    return {} if identity is None else {"X-Request-ID": identity}


def _unauthorised() -> Response:
    return document(
        status=401,
        code="unauthorised",
        detail="Present a valid bearer token, or a platform key of your own by HTTP Basic.",
        headers={"WWW-Authenticate": 'Bearer realm="approvaltrail"'},
    )
