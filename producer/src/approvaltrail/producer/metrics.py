"""The producer's Prometheus metrics, each with a word on when to worry.

They live in a registry of the producer's own, so that two producers in one process do not clash;
an embedding server hands in its registry, or serves this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

if TYPE_CHECKING:
    from approvaltrail.producer.errors import Cause

_COMMIT_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.25, 1.0, 5.0)


class JournalMetrics:
    """What the writer's thread counts: once a batch, not once an event."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # Worry when it stands still while the server confirms calls.
        self._recorded = Counter(
            "approvaltrail_producer_recorded_events", "Events that are on disk.", registry=registry
        )
        # Worry when the 99th percentile passes what a confirm may wait for: a slow disk.
        self._commit_seconds = Histogram(
            "approvaltrail_producer_commit_seconds",
            "How long a transaction took until it was on disk.",
            buckets=_COMMIT_BUCKETS,
            registry=registry,
        )
        # Worry at once: while this grows the gate is closed. The cause says why.
        self._unavailable = Counter(
            "approvaltrail_producer_unavailable",
            "How often the journal stopped taking events, by cause.",
            ["cause"],
            registry=registry,
        )

    def committed(self, events: int, seconds: float) -> None:
        """Count a committed batch."""
        self._recorded.inc(events)
        self._commit_seconds.observe(seconds)

    def unavailable(self, cause: Cause) -> None:
        """Count that the journal became unavailable."""
        self._unavailable.labels(cause.value).inc()


class RelayMetrics:
    """What the relay's thread counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # Worry when it stands still while events are recorded.
        self.delivered = Counter(
            "approvaltrail_producer_delivered_events",
            "Events that the broker acknowledged, those sent twice counted twice.",
            registry=registry,
        )
        # Worry when it keeps growing: the broker, the network or the credentials fail.
        self.client_changes = Counter(
            "approvaltrail_producer_client_changes",
            "Kafka clients that were discarded after a failure and replaced, by error.",
            ["error"],
            registry=registry,
        )
        # Worry about any: these numbers are lost, and the disk under the journal is suspect.
        self.isolated = Counter(
            "approvaltrail_producer_isolated_events",
            "Events that cannot be sent and are declared lost, by cause.",
            ["cause"],
            registry=registry,
        )
        # Worry when repairs recur: something behind the broker loses events.
        self.repaired = Counter(
            "approvaltrail_producer_repaired_events",
            "Events that were sent again on request.",
            registry=registry,
        )


class ProducerMetrics:
    """All of a producer's metrics."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.journal = JournalMetrics(self.registry)
        self.relay = RelayMetrics(self.registry)
        # Worry when it grows for minutes: the broker is away or too slow; see the fill.
        self.pending = Gauge(
            "approvaltrail_producer_pending_events",
            "Recorded and not yet acknowledged by the broker.",
            registry=self.registry,
        )
        # Worry above 0.5: at 0.8 unverified refusals are only counted, at 1 the gate closes.
        self.fill = Gauge(
            "approvaltrail_producer_journal_fill_ratio",
            "Used share of the journal's limit.",
            registry=self.registry,
        )
        # Worry above 0: these refusals are known only by number until the journal recovers.
        self.unrecorded = Gauge(
            "approvaltrail_producer_unrecorded_refusals",
            "Refusals counted while they could not be recorded.",
            registry=self.registry,
        )
        # Worry about any: a caller sent a token where none belongs; look at that client.
        self.scrubbed = Gauge(
            "approvaltrail_producer_scrubbed_values",
            "Values from which a token was removed before recording.",
            registry=self.registry,
        )
