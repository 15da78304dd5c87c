"""The producer's settings: where the journal is, where Kafka is, and every bound."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated, Final, Literal

import platformdirs
from pydantic import Field
from pydantic_settings import SettingsConfigDict

from approvaltrail.schemas import bounds
from approvaltrail.schemas.kafka_settings import KafkaSettings
from approvaltrail.schemas.registry_settings import RegistrySettings

Compression = Literal["lz4", "gzip", "none"]

_MIB: Final = 1024 * 1024


def default_journal_dir() -> Path:
    """Return the directory for journals of this user where none is set."""
    return platformdirs.user_state_path("approvaltrail") / "journals"


class ProducerSettings(KafkaSettings, RegistrySettings):
    """How events are recorded and sent on."""

    model_config = SettingsConfigDict(extra="forbid")

    service: Annotated[str, Field(min_length=1, max_length=bounds.SERVICE)]
    """Name of the server that embeds the producer; journals are resumed by it."""
    instance: Annotated[str, Field(min_length=1, max_length=bounds.INSTANCE)] = Field(
        default_factory=socket.gethostname
    )
    """Which of the service's machines or pods this is."""

    journal_dir: Path = Field(default_factory=default_journal_dir)
    """Where journals are kept: a local disk that outlives the process."""
    journal_allowed_file_systems: str = ""
    """File system types, separated by commas, that are allowed although they may lose events
    (`tmpfs`, `nfs4`, …)."""
    journal_limit_bytes: Annotated[int, Field(ge=_MIB, le=2**40)] = 1024 * _MIB
    """A journal grows to this size; then nothing is recorded until the relay has delivered."""
    journal_unverified_share: Annotated[float, Field(gt=0, lt=1)] = 0.8
    """Refusals of tokens that nobody issued may fill this share of the journal, no more."""
    journal_retention_hours: Annotated[float, Field(ge=0, le=24 * 366)] = 72.0
    """Delivered events stay this long, to be sent again if a broker or store lost them."""
    journal_checkpoint_pages: Annotated[int, Field(ge=50, le=10_000)] = 250
    """SQLite moves its write-ahead log into the file after so many pages."""
    queue_limit_bytes: Annotated[int, Field(ge=_MIB, le=1024 * _MIB)] = 64 * _MIB
    """Events that wait for the writer at most; beyond it recording fails at once."""
    stall_seconds: Annotated[float, Field(gt=0, le=300)] = 10.0
    """A write that the disk does not answer for so long makes the journal unavailable."""

    seal_events: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """A segment is sealed when it holds so many events …"""
    seal_seconds: Annotated[float, Field(gt=0, le=3_600)] = 5.0
    """… or its first event is so old."""

    relay_compression: Compression = "lz4"
    """How batches to Kafka are compressed."""
    relay_chunk_events: Annotated[int, Field(ge=1, le=20_000)] = 500
    """Events that are read and sent at a time. Larger ones drain faster and hold up those who
    record meanwhile."""
    relay_linger_ms: Annotated[int, Field(ge=0, le=5_000)] = 20
    """How long the relay gathers events before it sends what is there."""
    relay_pace_events_per_second: Annotated[int, Field(ge=1, le=1_000_000)] = 14_000
    """How fast a backlog is sent while events are being recorded: more would slow them down."""
    relay_connect_seconds: Annotated[float, Field(gt=0, le=120)] = 10.0
    """How long one attempt to reach the broker and the topics may take."""
    relay_retry_longest_seconds: Annotated[float, Field(gt=0, le=300)] = 10.0
    """The longest wait between two attempts against a broker that does not answer."""
    request_timeout_ms: Annotated[int, Field(ge=40_000, le=600_000)] = 40_000
    """How long Kafka may take to answer. Not below 40 s: a partition without a leader for longer
    costs a new client and a replay."""
    heartbeat_seconds: Annotated[float, Field(gt=0, le=300)] = 5.0
    """How often the producer says its last number, and how it is."""
    close_seconds: Annotated[float, Field(gt=0, le=600)] = 10.0
    """How long a lifespan's end may take: to deliver, and to say that the journal is closed."""

    @property
    def allowed_file_systems(self) -> frozenset[str]:
        """The file system types that are allowed by name."""
        names = self.journal_allowed_file_systems.split(",")
        return frozenset(name.strip().lower() for name in names if name.strip())
