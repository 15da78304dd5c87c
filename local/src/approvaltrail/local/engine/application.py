"""The engine as an ASGI application."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

import structlog
from anyio import CapacityLimiter, to_thread
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from approvaltrail.local.engine.errors import QueryError
from approvaltrail.local.engine.http_answers import Answers
from approvaltrail.local.engine.http_requests import Authenticator, query_id_of, read_query
from approvaltrail.local.engine.metrics import EngineMetrics

if TYPE_CHECKING:
    from starlette.requests import Request

    from approvaltrail.local.engine.executor import Executor
    from approvaltrail.local.engine.folder import EngineAddress

_READY_WITHIN_SECONDS = 5.0
_THREADS = 80
"""More than both pools let run at once, so that health checks never wait behind statements."""
_HOSTS = ["127.0.0.1", "localhost"]
"""Any other Host header comes from a web page that has its own name resolved to this machine."""


def application(executor: Executor, address: EngineAddress) -> Starlette:
    """Return the application: statements on `/`, health and metrics beside them."""
    service = _Service(executor, address)
    return Starlette(
        routes=[
            Route("/ping", _live),
            Route("/healthz", _live),
            Route("/readyz", service.ready),
            Route("/metrics", service.metrics),
            Route("/", service.statement, methods=["GET", "POST"]),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS)],
    )


async def _live(_: Request) -> Response:
    return PlainTextResponse("Ok.\n")


class _Service:
    def __init__(self, executor: Executor, address: EngineAddress) -> None:
        self._executor = executor
        self._answers = Answers(executor.version, executor.timezone)
        self._authenticator = Authenticator(address)
        self._threads = CapacityLimiter(_THREADS)
        self._metrics = EngineMetrics()
        self._metrics.running.set_function(lambda: executor.busy)
        self._log = structlog.get_logger("approvaltrail.engine")

    async def ready(self, _: Request) -> Response:
        """Answer 200 once a SELECT 1 ran, 503 when it did not within five seconds."""
        check = to_thread.run_sync(self._executor.check, limiter=self._threads)
        try:
            await asyncio.wait_for(check, _READY_WITHIN_SECONDS)
        except (QueryError, TimeoutError):
            return PlainTextResponse("not ready: SELECT 1 did not run\n", 503)
        return PlainTextResponse("ready\n")

    async def metrics(self, _: Request) -> Response:
        """Answer in Prometheus' text form."""
        return Response(generate_latest(self._metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def statement(self, request: Request) -> Response:
        """Run the request's statement and answer as a ClickHouse server does."""
        query_id = query_id_of(request)
        try:
            return await self._run(request, query_id)
        except QueryError as error:
            self._metrics.errors.labels(code=error.code).inc()
            # The code alone: the text may quote rows.
            self._log.warning("statement_failed", query_id=query_id, code=error.code)
            return self._answers.failure(request, query_id, error)

    async def _run(self, request: Request, query_id: str) -> Response:
        caller = self._authenticator.caller(request)
        query = await read_query(request, query_id)
        if not query.sql.strip():
            return PlainTextResponse("Ok.\n")
        read_only = request.method == "GET"  # as ClickHouse has it
        started = time.perf_counter()
        run = partial(self._executor.run, query, reader=caller.reader, read_only=read_only)
        answer = await to_thread.run_sync(run, limiter=self._threads)
        seconds = time.perf_counter() - started
        self._metrics.requests.labels(user=caller.user, kind=answer.kind).inc()
        self._metrics.seconds.labels(kind=answer.kind).observe(seconds)
        self._metrics.rows_written.inc(answer.written_rows)
        self._log.debug(
            "statement_ran",
            query_id=query_id,
            user=caller.user,
            kind=answer.kind.value,
            written_rows=answer.written_rows,
            seconds=round(seconds, 4),
        )
        return self._answers.result(request, query_id, answer)
