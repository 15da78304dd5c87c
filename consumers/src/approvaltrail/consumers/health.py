"""/healthz, /readyz and /metrics of a process: shared by the sink and by whoever supervises it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How a process is doing: whether it does its work, and sentences on what keeps it."""

    ready: bool
    state: str = "ok"
    """`starting`, `ok`, `degraded` or `stopping`."""
    reasons: tuple[str, ...] = ()
    """What is wrong and what to do; never a secret or a payload."""
    details: dict[str, object] = field(default_factory=dict)


def health_app(condition: Callable[[], Condition], registry: CollectorRegistry) -> Starlette:
    """Return an app with /healthz (alive), /readyz (doing its work) and /metrics (Prometheus)."""

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def readyz(_request: Request) -> Response:
        now = condition()
        body = {"status": now.state, "reasons": list(now.reasons), **now.details}
        return JSONResponse(body, status_code=200 if now.ready else 503)

    async def metrics(_request: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
        ]
    )


class _Server(uvicorn.Server):
    """Leaves signals to the process that it serves in."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HealthServer:
    """Serves an app on host and port inside the running event loop; port 0 takes a free one."""

    def __init__(self, app: Starlette, *, host: str, port: int) -> None:
        self._host = host
        self._port = port
        configuration = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", ws="none"
        )
        self._server = _Server(configuration)
        self._task: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port in use, known after `start`."""
        return self._port

    async def start(self) -> None:
        """Bind and serve.

        Raises:
            OSError: the address is taken or is not ours.
        """
        listener = socket.create_server((self._host, self._port), reuse_port=False)
        listener.setblocking(False)
        self._port = listener.getsockname()[1]
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]))

    async def stop(self) -> None:
        """Stop serving."""
        if self._task is not None:
            self._server.should_exit = True
            self._server.force_exit = True
            await self._task
            self._task = None
