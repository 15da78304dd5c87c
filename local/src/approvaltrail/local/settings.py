"""Settings of everything on one machine: where data lives, which ports, whose servers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import platformdirs
from pydantic import Field, SecretStr

from approvaltrail.schemas.environment import EnvironmentSettings, named
from approvaltrail.store.settings import StoreSettings

Port = Annotated[int, Field(ge=1, le=65535)]


def default_data_folder() -> Path:
    """Return the data folder of a user who names none."""
    return platformdirs.user_data_path("approvaltrail")


class LocalSettings(EnvironmentSettings):
    """What `up`, `demo` and the commands that look for a running `up` need to know.

    A part whose server is given is not started. A port that is not given is a free one.
    """

    data: Path = Field(default_factory=default_data_folder)
    """Folder of the journal, the broker's and the engine's files, logs and the run file."""
    kafka_bootstrap_servers: str | None = Field(
        default=None,
        min_length=1,
        validation_alias=named("APPROVALTRAIL_KAFKA_BOOTSTRAP_SERVERS", "KAFKA_BOOTSTRAP_SERVERS"),
    )
    clickhouse_dsn: SecretStr | None = Field(
        default=None, validation_alias=named("APPROVALTRAIL_CLICKHOUSE_DSN", "CLICKHOUSE_DSN")
    )
    clickhouse_reader_dsn: SecretStr | None = Field(
        default=None,
        validation_alias=named("APPROVALTRAIL_CLICKHOUSE_READER_DSN", "CLICKHOUSE_READER_DSN"),
    )
    """A user who may only read, for the dashboard and the asking commands."""
    clickhouse_password: SecretStr | None = Field(
        default=None,
        validation_alias=named("APPROVALTRAIL_CLICKHOUSE_PASSWORD", "CLICKHOUSE_PASSWORD"),
    )
    """Takes the place of the password in `clickhouse_dsn`."""
    topic_prefix: str = ""
    broker_port: Port | None = None
    """The broker's port on the loopback; unset, like the ports below, takes a free one."""
    engine_port: Port | None = None
    """The engine's HTTP port."""
    dashboard_port: Port | None = None
    """The dashboard's port."""
    sink_health_port: Port | None = None
    """Where the sink serves /healthz, /readyz and /metrics."""
    supervisor_port: Port | None = None
    """Where `up` serves its own."""
    jar_cache: Path | None = None
    """Folder of Kafka's jars, instead of the one in the user's cache."""
    offline: bool = False
    """Never fetch jars: fail when one is missing."""

    def given_writer_dsn(self) -> str | None:
        """Return the given store's DSN with its password in place: a secret."""
        if self.clickhouse_dsn is None:
            return None
        return StoreSettings.from_environment(
            clickhouse_dsn=self.clickhouse_dsn, clickhouse_password=self.clickhouse_password
        ).dsn()

    def given_reader_dsn(self) -> str | None:
        """Return the DSN of the given store's reading user, else of its only user: a secret."""
        if self.clickhouse_reader_dsn is None:
            return self.given_writer_dsn()
        return self.clickhouse_reader_dsn.get_secret_value()
