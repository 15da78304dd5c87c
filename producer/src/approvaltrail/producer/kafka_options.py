"""Settings as aiokafka takes them."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, Final

from aiokafka.helpers import create_ssl_context

from approvaltrail.schemas.errors import SettingsError

if TYPE_CHECKING:
    from approvaltrail.producer.settings import ProducerSettings

BATCH_BYTES: Final = 512 * 1024
"""Half of what the topics take in one message set: a batch always fits, compressed or not."""


def connection_options(settings: ProducerSettings) -> dict[str, Any]:
    """Return what every client needs to connect.

    Raises:
        SettingsError: a certificate or key cannot be used.
    """
    options: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers,
        "client_id": f"approvaltrail-{settings.service}",
        "security_protocol": settings.kafka_security_protocol,
        "request_timeout_ms": settings.request_timeout_ms,
    }
    if settings.kafka_security_protocol.endswith("SSL"):
        options["ssl_context"] = _ssl_context(settings)
    if settings.kafka_security_protocol.startswith("SASL") and settings.kafka_sasl_password:
        options["sasl_mechanism"] = settings.kafka_sasl_mechanism
        options["sasl_plain_username"] = settings.kafka_sasl_username
        options["sasl_plain_password"] = settings.kafka_sasl_password.get_secret_value()
    return options


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


def _ssl_context(settings: ProducerSettings) -> ssl.SSLContext:
    files = (settings.kafka_ssl_ca_file, settings.kafka_ssl_cert_file, settings.kafka_ssl_key_file)
    authority, certificate, key = (None if file is None else str(file) for file in files)
    try:
        context: ssl.SSLContext = create_ssl_context(
            cafile=authority, certfile=certificate, keyfile=key
        )
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            "APPROVALTRAIL_KAFKA_SSL_CA_FILE, _CERT_FILE or _KEY_FILE cannot be used "
            f"({type(error).__name__}): check that they exist and are PEM"
        ) from None
    return context
