"""The gate's settings, from the environment."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, SecretStr

from approvaltrail.gate.ledger.sqlite import DEFAULT_PATH
from approvaltrail.schemas.environment import EnvironmentSettings, named

DEFAULT_TTL_MS: Final = 600_000
MAXIMUM_TTL_MS: Final = 24 * 60 * 60 * 1_000


class Deployment(StrEnum):
    """Whom the server serves."""

    STDIO = "stdio"
    """One user on one machine, over a pipe."""
    REMOTE = "remote"
    """Many callers over a network, perhaps from several processes."""


class LedgerKind(StrEnum):
    """Where nonces are spent."""

    MEMORY = "memory"
    SQLITE = "sqlite"
    CONTROL = "control"
    """The control database that `CONTROL_DSN` names."""


class GateSettings(EnvironmentSettings):
    """How a gate signs, how long its tokens live, and where they are spent."""

    confirm_secret: Annotated[
        SecretStr | None,
        Field(validation_alias=named("CONFIRM_SECRET", "APPROVALTRAIL_CONFIRM_SECRET")),
    ] = None
    """HMAC key, 32 bytes or more; also by `CONFIRM_SECRET_FILE`."""
    confirm_secret_previous: Annotated[
        SecretStr | None,
        Field(
            validation_alias=named(
                "CONFIRM_SECRET_PREVIOUS", "APPROVALTRAIL_CONFIRM_SECRET_PREVIOUS"
            )
        ),
    ] = None
    """The secret before the last rotation: its tokens verify, none is signed with it."""
    confirm_ttl_ms: Annotated[
        int,
        Field(
            ge=1_000,
            le=MAXIMUM_TTL_MS,
            validation_alias=named("APPROVALTRAIL_CONFIRM_TTL_MS", "TIDB_MCP_CONFIRM_TTL_MS"),
        ),
    ] = DEFAULT_TTL_MS
    """How long a token lives, in milliseconds."""
    token_store: Annotated[
        Path, Field(validation_alias=named("APPROVALTRAIL_TOKEN_STORE", "SNODO_TOKEN_STORE"))
    ] = DEFAULT_PATH
    """The SQLite store's file."""
    ledger: LedgerKind | None = None
    """Where nonces are spent; unset chooses by the other settings (`startup.ledger_kind`)."""
    deployment: Deployment = Deployment.STDIO
    """`stdio` for one local client, `remote` for a server that many reach."""
    writable: bool = True
    """Whether any tool that needs a confirmation is enabled."""
    control_dsn: Annotated[
        SecretStr | None, Field(validation_alias=named("CONTROL_DSN", "APPROVALTRAIL_CONTROL_DSN"))
    ] = None
    """The control database: `mysql://`, `mariadb://`, `tidb://`, `postgresql://` or
    `sqlite:///PATH`; also by `CONTROL_DSN_FILE`."""
    single_process: bool = False
    """The operator's word that no other process serves these tools."""

    @property
    def lifetime(self) -> timedelta:
        """How long a token lives."""
        return timedelta(milliseconds=self.confirm_ttl_ms)
