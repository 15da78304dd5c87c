"""The engine's metrics, declared once."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class EngineMetrics:
    """Metrics of one engine on a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        # Worry when it stands still while a sink or a dashboard runs.
        self.requests = Counter(
            "approvaltrail_engine_requests",
            "Requests that carried a statement.",
            ["user", "kind"],
            registry=self.registry,
        )
        # Worry when inserts pass a second: the sink falls behind.
        self.seconds = Histogram(
            "approvaltrail_engine_request_seconds",
            "Time from the request's last byte to the answer's first.",
            ["kind"],
            buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
            registry=self.registry,
        )
        # Worry about 202 (too many at once), 241 (memory), 252 (too many parts), 516 (password).
        self.errors = Counter(
            "approvaltrail_engine_errors",
            "Requests that failed, by ClickHouse's error code.",
            ["code"],
            registry=self.registry,
        )
        # Worry when it stands still while events arrive.
        self.rows_written = Counter(
            "approvaltrail_engine_rows_written",
            "Rows that inserts have read, before any WHERE of theirs.",
            registry=self.registry,
        )
        # Worry when it stays near the pools' limit of 32.
        self.running = Gauge(
            "approvaltrail_engine_statements_running",
            "Statements that run now.",
            registry=self.registry,
        )
