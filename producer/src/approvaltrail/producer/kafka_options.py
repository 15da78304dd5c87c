"""Settings as aiokafka takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from approvaltrail.producer.settings import ProducerSettings

BATCH_BYTES: Final = 512 * 1024
"""Half of what the topics take in one message set: a batch always fits, compressed or not."""


def connection_options(settings: ProducerSettings) -> dict[str, Any]:
    """Return what every client needs to connect.

    Raises:
        SettingsError: a certificate or key cannot be used.
    """
    return settings.connection_options() | {
        "client_id": f"approvaltrail-{settings.service}",
        "request_timeout_ms": settings.request_timeout_ms,
    }


def producer_options(settings: ProducerSettings) -> dict[str, Any]:
    """Return the options of the producing client: idempotent, acknowledged by all replicas."""
    compression = settings.relay_compression
    return connection_options(settings) | {
        "acks": "all",
        "enable_idempotence": True,
        "compression_type": None if compression == "none" else compression,
        "max_batch_size": BATCH_BYTES,
        "max_request_size": 2 * BATCH_BYTES,
        "linger_ms": 0,
    }
