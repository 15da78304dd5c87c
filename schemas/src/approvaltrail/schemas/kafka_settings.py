"""Where Kafka is and how to prove who we are: the same settings for all who speak to it."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from approvaltrail.schemas.environment import EnvironmentSettings, named
from approvaltrail.schemas.errors import SettingsError

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

_SERVER: Final = re.compile(r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})$")
_HIGHEST_PORT: Final = 65_535


class KafkaSettings(EnvironmentSettings):
    """A Kafka cluster, and a user of it."""

    kafka_bootstrap_servers: Annotated[str, Field(min_length=1)] = Field(
        validation_alias=named("APPROVALTRAIL_KAFKA_BOOTSTRAP_SERVERS", "KAFKA_BOOTSTRAP_SERVERS")
    )
    """`host:port`, several separated by commas."""
    kafka_security_protocol: SecurityProtocol = Field(
        default="PLAINTEXT",
        validation_alias=named("APPROVALTRAIL_KAFKA_SECURITY_PROTOCOL", "KAFKA_SECURITY_PROTOCOL"),
    )
    """`PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`: whether the connection is encrypted, and
    whether the broker asks for a password."""
    kafka_sasl_mechanism: SaslMechanism = Field(
        default="SCRAM-SHA-512",
        validation_alias=named("APPROVALTRAIL_KAFKA_SASL_MECHANISM", "KAFKA_SASL_MECHANISM"),
    )
    """How the password is proved, with a SASL protocol."""
    kafka_sasl_username: str | None = Field(
        default=None,
        validation_alias=named("APPROVALTRAIL_KAFKA_SASL_USERNAME", "KAFKA_SASL_USERNAME"),
    )
    """The user, with a SASL protocol."""
    kafka_sasl_password: SecretStr | None = Field(
        default=None,
        validation_alias=named("APPROVALTRAIL_KAFKA_SASL_PASSWORD", "KAFKA_SASL_PASSWORD"),
    )
    """The user's password."""
    kafka_ssl_ca_file: Path | None = Field(
        default=None,
        validation_alias=named("APPROVALTRAIL_KAFKA_SSL_CA_FILE", "KAFKA_SSL_CA_FILE"),
    )
    """Certificates to trust; without it, the system's."""
    kafka_ssl_cert_file: Path | None = Field(
        default=None,
        validation_alias=named("APPROVALTRAIL_KAFKA_SSL_CERT_FILE", "KAFKA_SSL_CERT_FILE"),
    )
    """Our own certificate, where the broker asks for one …"""
    kafka_ssl_key_file: Path | None = Field(
        default=None,
        validation_alias=named("APPROVALTRAIL_KAFKA_SSL_KEY_FILE", "KAFKA_SSL_KEY_FILE"),
    )
    """… and its key."""
    topic_prefix: Annotated[str, Field(max_length=100, pattern=r"^[a-zA-Z0-9._-]*$")] = ""
    """Put before every topic's name, on a cluster shared with others."""

    @field_validator("kafka_bootstrap_servers")
    @classmethod
    def _servers(cls, text: str) -> str:
        servers = [part.strip() for part in text.split(",") if part.strip()]
        for server in servers:
            match = _SERVER.match(server)
            if match is None or not 0 < int(match[2]) <= _HIGHEST_PORT:
                raise ValueError("takes host:port, several separated by commas")
        if not servers:
            raise ValueError("names no server; takes host:port, several separated by commas")
        return ",".join(servers)

    @model_validator(mode="after")
    def _credentials_are_whole(self) -> Self:
        if self.kafka_security_protocol.startswith("SASL") and not (
            self.kafka_sasl_username and self.kafka_sasl_password
        ):
            raise ValueError(
                "APPROVALTRAIL_KAFKA_SECURITY_PROTOCOL asks for SASL: set "
                "APPROVALTRAIL_KAFKA_SASL_USERNAME and APPROVALTRAIL_KAFKA_SASL_PASSWORD too"
            )
        if (self.kafka_ssl_cert_file is None) is not (self.kafka_ssl_key_file is None):
            raise ValueError(
                "set APPROVALTRAIL_KAFKA_SSL_CERT_FILE and APPROVALTRAIL_KAFKA_SSL_KEY_FILE "
                "together, or neither"
            )
        return self

    @property
    def bootstrap_servers(self) -> list[str]:
        """The servers as a list."""
        return self.kafka_bootstrap_servers.split(",")

    def connection_options(self) -> dict[str, Any]:
        """Return the keyword arguments with which each of aiokafka's clients connects.

        Raises:
            SettingsError: a certificate or key cannot be used.
        """
        options: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers,
            "security_protocol": self.kafka_security_protocol,
        }
        if self.kafka_security_protocol.startswith("SASL") and self.kafka_sasl_password:
            options |= {
                "sasl_mechanism": self.kafka_sasl_mechanism,
                "sasl_plain_username": self.kafka_sasl_username,
                "sasl_plain_password": self.kafka_sasl_password.get_secret_value(),
            }
        if self.kafka_security_protocol.endswith("SSL"):
            options["ssl_context"] = self._tls()
        return options

    def _tls(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.kafka_ssl_ca_file)
            if self.kafka_ssl_cert_file is not None:
                context.load_cert_chain(self.kafka_ssl_cert_file, self.kafka_ssl_key_file)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                "APPROVALTRAIL_KAFKA_SSL_CA_FILE, …_CERT_FILE or …_KEY_FILE: a file they name "
                f"cannot be used ({type(error).__name__}); check that each exists, may be read "
                "and is PEM"
            ) from None
        return context
