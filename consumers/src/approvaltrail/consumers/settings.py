"""Settings of the consumers, read from the environment by entry points only."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from approvaltrail.schemas.kafka_settings import KafkaSettings
from approvaltrail.schemas.registry_settings import RegistrySettings
from approvaltrail.store.settings import StoreSettings


class SinkSettings(KafkaSettings, RegistrySettings, StoreSettings):
    """How the sink gathers, stores and gives up; where Kafka, a registry and the store are."""

    sink_group_id: Annotated[str, Field(min_length=1, max_length=200)] = "approval-trail-sink"
    """The consumer group that all sinks of one store share."""
    sink_instance: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """A name of this sink that stays over restarts and is nobody else's, as a pod of a stateful set
    has one. With it, a sink that was killed takes its partitions back at once (KIP-345); without
    it, when the group has missed it for session_timeout_ms."""
    flush_events: Annotated[int, Field(ge=1, le=500_000)] = 80_000
    """A batch is stored when it holds so many events …"""
    flush_bytes: Annotated[int, Field(ge=1_024, le=256 * 1024 * 1024)] = 48 * 1024 * 1024
    """… or so many bytes …"""
    flush_interval_ms: Annotated[int, Field(ge=1, le=60_000)] = 100
    """… or its first event has waited so long. Twice flush_events are held at most: one batch on
    its way and one gathering; then the partitions pause."""
    retention_days: Annotated[int, Field(ge=1, le=36_500)] = 1_096
    """An event older than this is a dead letter. It also bounds the months that one block spans."""
    future_tolerance_seconds: Annotated[int, Field(ge=0, le=86_400)] = 3_600
    """An event further in the future than this is a dead letter."""
    retry_longest_seconds: Annotated[float, Field(gt=0, le=300)] = 5.0
    """The longest wait between two attempts against a store that does not answer."""
    revocation_timeout_seconds: Annotated[float, Field(ge=0, le=120)] = 10.0
    """How long a rebalance waits for the insert on its way; after it, that batch is given up
    uncommitted, and whoever gets the partition stores it again."""
    drain_timeout_seconds: Annotated[float, Field(ge=0, le=300)] = 10.0
    """How long a stop waits for what has been fetched to be stored."""
    dead_letter_timeout_seconds: Annotated[float, Field(gt=0, le=120)] = 10.0
    """How long to wait for the dead-letter topic before the partition pauses."""
    stalled_retry_seconds: Annotated[float, Field(gt=0, le=3_600)] = 15.0
    """How often a partition tries again whose dead letter could not be delivered."""
    session_timeout_ms: Annotated[int, Field(ge=1_000, le=300_000)] = 10_000
    """A member of the group that is silent for so long loses its partitions."""
    heartbeat_interval_ms: Annotated[int, Field(ge=100, le=100_000)] = 1_000
    """The group's own liveness, not the producers' heartbeats."""
    repair_interval_seconds: Annotated[float, Field(ge=0, le=86_400)] = 60.0
    """How often to look for gaps and ask for them again; 0 switches it off."""
    repair_again_seconds: Annotated[float, Field(ge=1, le=604_800)] = 900.0
    """The same gap is asked for again no sooner than this."""
    health_host: str = "127.0.0.1"
    """The address to serve health and metrics on."""
    health_port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    """Where /healthz, /readyz and /metrics are served; 0 takes a free port, unset serves none."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe events that are logged."""
