"""Where a schema registry is, for those whose other readers of the events' topic need one."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from approvaltrail.schemas.environment import EnvironmentSettings
from approvaltrail.schemas.errors import SettingsError


class RegistrySettings(EnvironmentSettings):
    """A schema registry with Confluent's interface, and a user of it; none by default."""

    schema_registry_url: str | None = None
    """Where the registry's interface begins, as `https://registry:8081` or
    `http://registry:8080/apis/ccompat/v7`. With it, a producer sends events in Confluent's framing,
    and a sink takes both framings; without it, events go out in Avro's single-object encoding."""
    schema_registry_username: str | None = None
    """The user, where the registry asks for one …"""
    schema_registry_password: SecretStr | None = None
    """… and the password."""
    schema_registry_ca_file: Path | None = None
    """Certificates to trust; without it, the system's."""
    schema_registry_register: bool = True
    """Whether a producer registers the event's schema where the registry lacks it. Switched off, it
    waits until somebody has: `approvaltrail migrate` does."""
    schema_registry_timeout_seconds: Annotated[float, Field(gt=0, le=60)] = 5.0
    """How long one question to the registry may take."""

    @field_validator("schema_registry_url")
    @classmethod
    def _url(cls, text: str | None) -> str | None:
        if not text:
            return None
        try:
            parts = urlsplit(text)
            whole = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        except ValueError:
            whole = False
        if not whole or parts.query or parts.fragment:
            raise ValueError("takes http(s)://host:port, and a path if there is one")
        if "@" in parts.netloc:
            raise ValueError(
                "holds no credentials: set APPROVALTRAIL_SCHEMA_REGISTRY_USERNAME and "
                "APPROVALTRAIL_SCHEMA_REGISTRY_PASSWORD"
            )
        return text.rstrip("/")

    @model_validator(mode="after")
    def _registry_credentials_are_whole(self) -> Self:
        if (self.schema_registry_username is None) is not (self.schema_registry_password is None):
            raise ValueError(
                "set APPROVALTRAIL_SCHEMA_REGISTRY_USERNAME and "
                "APPROVALTRAIL_SCHEMA_REGISTRY_PASSWORD together, or neither"
            )
        return self

    def schema_registry_tls(self) -> ssl.SSLContext:
        """Return how to know the registry.

        Raises:
            SettingsError: the certificates cannot be used.
        """
        try:
            return ssl.create_default_context(cafile=self.schema_registry_ca_file)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                "APPROVALTRAIL_SCHEMA_REGISTRY_CA_FILE: the file it names cannot be used "
                f"({type(error).__name__}); check that it exists, may be read and is PEM"
            ) from None
