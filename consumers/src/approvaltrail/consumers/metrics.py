"""The sink's metrics, each with a word on when to worry."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_EVENTS = (1, 10, 100, 1_000, 5_000, 10_000, 20_000, 50_000, 100_000)


class SinkMetrics:
    """Declared once a process, in a registry of its own."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._count_messages()
        self._watch_the_way()
        self._watch_trouble()
        self._watch_completeness()

    def _count_messages(self) -> None:
        # Worry when it stands still while lag grows.
        self.stored = self._counter("stored", "Messages stored, repeats included.", "topic")
        # Some after a restart or rebalance are normal; worry when it keeps pace with `stored`.
        self.repeated = self._counter(
            "repeated", "Messages met again at a position already stored.", "topic"
        )
        # Worry at the first: somebody writes what the contract does not allow.
        self.dead_letters = self._counter("dead_letters", "Messages set aside.", "topic", "cause")
        # Worry at the first: the broker skipped positions that ought to hold messages.
        self.skipped_offsets = self._counter(
            "skipped_offsets", "Positions that the broker passed over.", "topic"
        )
        self.repairs = self._counter("repair_requests", "Gaps asked for again.")

    def _watch_the_way(self) -> None:
        # Worry when it grows for minutes: the sink is slower than the producers, or stands.
        self.lag = Gauge(
            "approvaltrail_sink_lag_messages",
            "Messages behind the end of each partition.",
            ["topic", "partition"],
            registry=self.registry,
        )
        # Worry when it stays at twice flush_events: the store does not keep up.
        self.buffered = Gauge(
            "approvaltrail_sink_buffered_messages",
            "Messages fetched and not yet stored.",
            ["topic"],
            registry=self.registry,
        )
        # Worry when p99 passes a second: too many parts, or an overloaded store.
        self.insert_seconds = Histogram(
            "approvaltrail_sink_insert_seconds",
            "How long one insert took.",
            registry=self.registry,
            buckets=_SECONDS,
        )
        self.batch_events = Histogram(
            "approvaltrail_sink_batch_events",
            "Messages in one batch.",
            registry=self.registry,
            buckets=_EVENTS,
        )

    def _watch_trouble(self) -> None:
        # Worry when it rises for longer than a restart of the store takes.
        self.insert_retries = self._counter("insert_retries", "Inserts tried again.", "why")
        # Each is a search for the bad messages among good ones; worry when frequent.
        self.refused_blocks = self._counter("refused_blocks", "Blocks refused.", "code")
        # Some at each deployment; worry when they come without one.
        self.rebalances = self._counter("rebalances", "Times partitions were taken or given.")
        # Worry when frequent: another member was given partitions while this one held them.
        self.fenced = self._counter("fenced_commits", "Commits that came too late.")
        # Worry at once: these partitions stand until the dead-letter topic takes messages.
        self.stalled = Gauge(
            "approvaltrail_sink_stalled_partitions",
            "Partitions that wait for the dead-letter topic.",
            registry=self.registry,
        )

    def _watch_completeness(self) -> None:
        """Declare what the sink that owns the first partition finds at each repair interval.

        In the other sinks of a group they are not a number.
        """
        # Worry when it is minutes old: nobody looks, or the store does not answer.
        self.completeness_asked = self._gauge(
            "completeness_asked_timestamp_seconds", "When completeness was looked at last."
        )
        # Worry when it stays behind the clock for longer than an outage explains, or at 0.
        self.complete_until = self._gauge(
            "complete_until_timestamp_seconds",
            "Every event recorded before this instant is stored or set aside.",
        )
        # Worry when it does not go back to 0 after numbers were asked for again.
        self.missing_numbers = self._gauge(
            "missing_numbers", "Numbers recorded, no longer in flight, and not stored."
        )
        # Worry at once: two processes number their events from copies of one journal.
        self.cloned_numbers = self._gauge(
            "cloned_numbers", "Numbers that stand for two different events."
        )
        # Worry when it stays: messages set aside wait for their cause to be mended.
        self.open_dead_letters = self._gauge(
            "open_dead_letters", "Messages set aside and not redriven."
        )
        # Worry when it stays: a server ended without saying so.
        self.silent_producers = self._gauge(
            "silent_producers", "Producers not heard from that did not say that they close."
        )
        # Worry at once: confirms are refused there.
        self.gate_closed = self._gauge(
            "producer_gate_closed",
            "1 while the gate beside a producer is closed, by its last heartbeat.",
            "producer_id",
            "service",
        )

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"approvaltrail_sink_{name}", text, labels, registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"approvaltrail_sink_{name}", text, labels, registry=self.registry)
