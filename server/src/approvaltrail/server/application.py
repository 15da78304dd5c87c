"""A server that is put together, and how it runs: over HTTP or over a pipe."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any

import structlog
from mcp.server.auth.settings import AuthSettings
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from approvaltrail.gate import Gate
from approvaltrail.producer import Producer
from approvaltrail.schemas import EventRecorder, RecorderUnavailableError
from approvaltrail.schemas.messages import Probe
from approvaltrail.server.auth import AccessTokens, Identifier
from approvaltrail.server.errors import StartRefusedError
from approvaltrail.server.mcp_server import McpSurface
from approvaltrail.server.metrics import metrics_served
from approvaltrail.server.rest import rest_routes
from approvaltrail.server.settings import ServerSettings, listed
from approvaltrail.server.surface import Surface

LEDGER_SECONDS = 10.0
"""Between two looks at the ledger."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LOGIN_HOPELESS = (
    "the SQL endpoint of TIDB_HOST answered with an error that waiting will not mend; check the "
    "login and to which cluster it belongs"
)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A server, ready to run."""

    settings: ServerSettings
    gate: Gate
    recorder: EventRecorder
    surface: Surface
    mcp: McpSurface
    rest_identifier: Identifier | None
    version: str

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look at the targets, state the reach, watch; on the way out let go of everything.

        Raises:
            StartRefusedError: a target of the deployment's own login answered that it will not do.
        """
        targets = self.surface.toolbox.targets
        registry, settings = self.surface.metrics.registry, self.settings
        try:
            await targets.look()
            if self.surface.pinned is not None and targets.hopeless():
                raise StartRefusedError([_LOGIN_HOPELESS])
            await self._state_reach()
            with metrics_served(registry, settings.metrics_host, settings.metrics_port):
                async with _beside(targets.watch(self.mcp.tools_changed), self._report_ledger()):
                    yield
        finally:
            await self.surface.platforms.close()

    def http(self) -> Starlette:
        """Return the ASGI application: MCP at /mcp, REST at /v1, health at /healthz and /readyz."""
        verifier = (
            None if self.surface.identifier is None else AccessTokens(self.surface.identifier)
        )
        inner = self.mcp.server.streamable_http_app(
            host=self.settings.host,
            transport_security=_transport_security(self.settings),
            auth=None if verifier is None else _auth_settings(self.settings),
            token_verifier=verifier,
        )
        routes: list[BaseRoute] = [Route("/healthz", _alive), Route("/readyz", self._ready)]
        if self.rest_identifier is not None:
            routes.append(
                rest_routes(
                    self.surface,
                    self.rest_identifier,
                    title=self.settings.service,
                    version=self.version,
                )
            )
        routes.append(Mount("", app=inner))  # last: it takes every other path

        @contextlib.asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            async with self._recording(app), self.running(), inner.router.lifespan_context(app):
                yield

        return Starlette(routes=routes, lifespan=lifespan)

    async def stdio(self) -> None:
        """Serve MCP over this process's standard input and output until they close."""
        async with self._recording(self), self.running(), stdio_server() as (reading, writing):
            options = self.mcp.server.create_initialization_options()
            await self.mcp.server.run(reading, writing, options)

    def _recording(self, app: object) -> contextlib.AbstractAsyncContextManager[None]:
        """Start and drain the producer with the server; other recorders need neither."""
        lifespan = getattr(self.recorder, "lifespan", None)
        found: Any = contextlib.nullcontext() if lifespan is None else lifespan(app)
        manager: contextlib.AbstractAsyncContextManager[None] = found
        return manager

    async def _ready(self, _request: Request) -> Response:
        reasons = []
        try:
            self.recorder.check()
        except RecorderUnavailableError:
            reasons.append("nothing can be recorded, so the gate is closed")
        if await asyncio.to_thread(self.gate.ledger.probe) is Probe.FAILING:
            reasons.append("the ledger does not answer, so the single-use tools are closed")
        states = self.surface.toolbox.targets.states
        body = {
            "ready": not reasons,
            "reasons": reasons,
            "targets": {name: state.value for name, state in states.items()},
        }
        return JSONResponse(body, status_code=503 if reasons else 200)

    async def _report_ledger(self) -> None:
        """Tell the producer how the ledger is, for its heartbeats, until cancelled."""
        while isinstance(self.recorder, Producer):
            self.recorder.report_ledger(await asyncio.to_thread(self.gate.ledger.probe))
            await asyncio.sleep(LEDGER_SECONDS)

    async def _state_reach(self) -> None:
        reach = await self.surface.reach(None)
        if reach is not None:
            _log.info("reach", breadth=reach.breadth.value, statement=reach.statement())


def _auth_settings(settings: ServerSettings) -> AuthSettings:
    url = settings.public_url or f"http://{_in_url(settings.host)}:{settings.port}"
    return AuthSettings(issuer_url=AnyHttpUrl(url), resource_server_url=None)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _transport_security(settings: ServerSettings) -> TransportSecuritySettings | None:
    """Hold requests to the expected Host headers; on the loopback MCP's own rule does it."""
    hosts = listed(settings.allowed_hosts)
    if hosts:
        return TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=list(hosts),
            allowed_origins=[
                f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")
            ],
        )
    if settings.host in _LOOPBACK:
        return None
    return TransportSecuritySettings(enable_dns_rebinding_protection=False)


async def _alive(_request: Request) -> Response:
    return JSONResponse({"status": "alive"})


@contextlib.asynccontextmanager
async def _beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run this work beside the block, and stop it with the block."""
    tasks = [asyncio.create_task(item) for item in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
