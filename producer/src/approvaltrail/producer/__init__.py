"""Records: a durable journal on disk, its seals, and the relay to Kafka."""

from __future__ import annotations

from approvaltrail.producer.errors import (
    EventTooLargeError,
    JournalDirectoryError,
    JournalUnavailableError,
    JournalVersionError,
    NotStartedError,
    ProducerError,
)
from approvaltrail.producer.health import HealthReason, ProducerHealth
from approvaltrail.producer.producer import Producer
from approvaltrail.producer.session import CloseReport
from approvaltrail.producer.settings import ProducerSettings

__all__ = [
    "CloseReport",
    "EventTooLargeError",
    "HealthReason",
    "JournalDirectoryError",
    "JournalUnavailableError",
    "JournalVersionError",
    "NotStartedError",
    "Producer",
    "ProducerError",
    "ProducerHealth",
    "ProducerSettings",
]
