"""How the consumers send: what a client of theirs is given beside how to connect."""

from __future__ import annotations

from typing import Any

from approvaltrail.schemas.kafka_settings import KafkaSettings

RELAY_TIMEOUT_MS = 40_000
"""An idempotent aiokafka producer whose partition stays leaderless for longer than its request
timeout loses its own count of sequences: shorter is not safe."""
LARGEST_REQUEST_BYTES = 64 * 1024 * 1024
"""The topic's own limit decides how large a message may be, not the client's. That limit is held
against what is sent, and a message that was compressed may be many times as large."""


def producer_options(settings: KafkaSettings) -> dict[str, Any]:
    """Return the keyword arguments of a producer whose sends must not be lost."""
    return {
        **settings.connection_options(),
        "acks": "all",
        "enable_idempotence": True,
        "compression_type": "lz4",  # what came compressed fits again
        "request_timeout_ms": RELAY_TIMEOUT_MS,
        "max_request_size": LARGEST_REQUEST_BYTES,
    }
