"""The store's settings as they stand in the environment."""

from __future__ import annotations

from urllib.parse import quote, urlsplit, urlunsplit

from pydantic import Field, SecretStr

from approvaltrail.schemas.environment import EnvironmentSettings, named


class StoreSettings(EnvironmentSettings):
    """Where the store is, and what its answers take for granted."""

    clickhouse_dsn: SecretStr = Field(
        validation_alias=named("APPROVALTRAIL_CLICKHOUSE_DSN", "CLICKHOUSE_DSN")
    )
    """`http(s)://user:password@host:port/database`, `clickhouse(s)://…`, or `chdb:///folder`."""
    clickhouse_password: SecretStr | None = Field(
        default=None,
        validation_alias=named("APPROVALTRAIL_CLICKHOUSE_PASSWORD", "CLICKHOUSE_PASSWORD"),
    )
    """Takes the place of the DSN's password, so that it can come from a file."""
    in_flight_seconds: float = Field(default=60.0, gt=0, le=86_400)
    """An event younger than this may lack without anything being wrong."""
    silent_after_seconds: float = Field(default=60.0, gt=0, le=86_400)
    """A live producer not heard from for longer than this is silent."""

    def dsn(self) -> str:
        """Return the DSN with its password in place: a secret."""
        dsn = self.clickhouse_dsn.get_secret_value()
        if self.clickhouse_password is None:
            return dsn
        parts = urlsplit(dsn)
        host = parts.netloc.rpartition("@")[2]
        user = parts.username or "default"
        password = quote(self.clickhouse_password.get_secret_value(), safe="")
        return urlunsplit(parts._replace(netloc=f"{user}:{password}@{host}"))
