"""The server's Prometheus metrics, each with a word on when to worry.

The producer's are beside them. They are served on a port of their own: how often which tool was
refused is not for all who can reach the tools.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server

from approvaltrail.gate import Preflight
from approvaltrail.producer import Producer
from approvaltrail.schemas import EventRecorder
from approvaltrail.server.dispatch import Answer, Done
from approvaltrail.server.present import code_of

UNKNOWN_TOOL: Final = "unknown"
_BUCKETS: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class CallMetrics:
    """What callers ask for, and what they are answered."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        # Worry when `not_recorded` or `ledger_unavailable` grows: the gate is closed for a reason.
        # Worry when `bad_signature` or `wrong_tenant` does: somebody tests the boundary.
        self._calls = Counter(
            "approvaltrail_server_calls",
            "Tool calls, by tool and by what they were answered.",
            ["tool", "answer"],
            registry=registry,
        )
        # Worry when the median of a preflight passes a second: the platform is slow to answer.
        self._seconds = Histogram(
            "approvaltrail_server_call_seconds",
            "How long a tool call took, look-ups and the work itself included.",
            ["tool"],
            buckets=_BUCKETS,
            registry=registry,
        )

    def answered(self, tool: str, answer: Answer, begun: float) -> None:
        """Count a call; `begun` is of `time.perf_counter`."""
        self._calls.labels(tool, _named(answer)).inc()
        self._seconds.labels(tool).observe(time.perf_counter() - begun)


def _named(answer: Answer) -> str:
    match answer:
        case Preflight():
            return "preflight"
        case Done():
            return "done"
        case _:
            return code_of(answer)


def registry_of(recorder: EventRecorder) -> CollectorRegistry:
    """Return the producer's registry, so that one page tells of both; else a new one."""
    return recorder.metrics.registry if isinstance(recorder, Producer) else CollectorRegistry()


@contextlib.contextmanager
def metrics_served(registry: CollectorRegistry, host: str, port: int | None) -> Iterator[None]:
    """Serve /metrics while the block runs; without a port, nowhere.

    Raises:
        OSError: the port is taken.
    """
    if port is None:
        yield
        return
    server, thread = start_http_server(port, addr=host, registry=registry)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
