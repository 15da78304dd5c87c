"""The supervisor's own health page and metrics, in a thread beside the parts."""

from __future__ import annotations

import asyncio
import threading
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from approvaltrail.consumers.health import Condition, HealthServer, health_app
from approvaltrail.local.errors import PartStartError
from approvaltrail.local.keeper import PartState, PartStatus
from approvaltrail.local.supervisor import Supervisor

_HOST: Final = "127.0.0.1"
_START_SECONDS: Final = 10.0


class SupervisorHealth:
    """Serves /healthz, /readyz and /metrics until stopped; `url` is known after `start`."""

    def __init__(self, supervisor: Supervisor, port: int | None) -> None:
        self.url = ""
        self._supervisor = supervisor
        self._port = port or 0
        self._registry = CollectorRegistry()
        # Worry when 0 for longer than a restart takes: /readyz names the part and the problem.
        self._up = Gauge("approvaltrail_part_up", "1 ready.", ["part"], registry=self._registry)
        # Worry when it grows: a part that ends again and again; its log says why.
        self._restarts = Gauge(
            "approvaltrail_part_restarts", "Since the start.", ["part"], registry=self._registry
        )
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started = threading.Event()
        self._problem: OSError | None = None

    def start(self) -> str:
        """Serve; return the address.

        Raises:
            PartStartError: the port is taken.
        """
        self._thread = threading.Thread(target=self._run, name="supervisor-health", daemon=True)
        self._thread.start()
        self._started.wait(_START_SECONDS)
        if self._problem is not None or not self.url:
            raise PartStartError(
                f"the supervisor's health page cannot listen on port {self._port} "
                f"({self._problem and self._problem.strerror}): give another port, or none"
            ) from self._problem
        return self.url

    def stop(self) -> None:
        """Stop serving."""
        if self._loop is not None and self._stop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
            self._loop = None

    def observe(self, status: PartStatus) -> None:
        """Take one part's status into the metrics."""
        self._up.labels(status.name).set(status.state is PartState.READY)
        self._restarts.labels(status.name).set(status.restarts)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        app = health_app(self._condition, self._registry)
        server = HealthServer(app, host=_HOST, port=self._port)
        try:
            await server.start()
        except OSError as error:
            self._problem = error
            self._started.set()
            return
        self.url = f"http://{_HOST}:{server.port}"
        self._started.set()
        await self._stop.wait()
        await server.stop()

    def _condition(self) -> Condition:
        statuses = self._supervisor.statuses
        lacking = [status for status in statuses if status.state is not PartState.READY]
        return Condition(
            ready=bool(statuses) and not lacking,
            state="ok" if statuses and not lacking else "degraded",
            reasons=tuple(
                f"the {status.name} is {status.state.value}"
                + (f": {status.problem}" if status.problem else "")
                for status in lacking
            ),
            details={"parts": {status.name: status.state.value for status in statuses}},
        )
