"""What every Kafka client of ours is given: addresses, and proof of who we are."""

from __future__ import annotations

import ssl
from typing import Any

from approvaltrail.consumers.settings import KafkaSettings
from approvaltrail.schemas.errors import SettingsError

RELAY_TIMEOUT_MS = 40_000
"""An idempotent aiokafka producer whose partition stays leaderless for longer than its request
timeout loses its own count of sequences: shorter is not safe."""
LARGEST_REQUEST_BYTES = 8 * 1024 * 1024
"""The topic's own limit decides how large a message may be, not the client's."""


def kafka_options(settings: KafkaSettings) -> dict[str, Any]:
    """Return the keyword arguments that a consumer, a producer and an admin client share.

    Raises:
        SettingsError: settings that do not fit together, or a certificate that cannot be read.
    """
    options: dict[str, Any] = {
        "bootstrap_servers": settings.kafka_bootstrap_servers,
        "security_protocol": settings.kafka_security_protocol,
    }
    if settings.kafka_security_protocol.startswith("SASL"):
        options |= _sasl(settings)
    if settings.kafka_security_protocol.endswith("SSL"):
        options["ssl_context"] = _tls(settings)
    return options


def producer_options(settings: KafkaSettings) -> dict[str, Any]:
    """Return the keyword arguments of a producer whose sends must not be lost."""
    return {
        **kafka_options(settings),
        "acks": "all",
        "enable_idempotence": True,
        "request_timeout_ms": RELAY_TIMEOUT_MS,
        "max_request_size": LARGEST_REQUEST_BYTES,
    }


def _sasl(settings: KafkaSettings) -> dict[str, Any]:
    if settings.kafka_sasl_username is None or settings.kafka_sasl_password is None:
        raise SettingsError(
            "APPROVALTRAIL_KAFKA_SASL_USERNAME, APPROVALTRAIL_KAFKA_SASL_PASSWORD: both are "
            f"needed for {settings.kafka_security_protocol}"
        )
    return {
        "sasl_mechanism": settings.kafka_sasl_mechanism,
        "sasl_plain_username": settings.kafka_sasl_username,
        "sasl_plain_password": settings.kafka_sasl_password.get_secret_value(),
    }


def _tls(settings: KafkaSettings) -> ssl.SSLContext:
    ca_file = settings.kafka_ssl_ca_file
    try:
        context = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
        if settings.kafka_ssl_cert_file is not None:
            key_file = settings.kafka_ssl_key_file
            context.load_cert_chain(settings.kafka_ssl_cert_file, key_file)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            "APPROVALTRAIL_KAFKA_SSL_CA_FILE, …_CERT_FILE, …_KEY_FILE: a file they name cannot be "
            f"used ({type(error).__name__}); check paths, permissions and that they are PEM"
        ) from None
    return context
