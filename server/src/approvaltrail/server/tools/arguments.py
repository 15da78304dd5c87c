"""What the tools ask for. Every name is one that a caller's context can answer."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

Role = Literal["role_readonly", "role_readwrite", "role_admin"]


def _text(maximum: int, description: str) -> object:
    return Field(min_length=1, max_length=maximum, description=description)


ClusterId = Annotated[str, _text(128, "Id or name of the cluster; tidb_list_clusters has them.")]
DisplayName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{2,62}[A-Za-z0-9]$"),
    Field(description="4 to 64 letters, digits and hyphens."),
]


class Arguments(BaseModel):
    """Base: names in camel case, nothing beyond them, no value repeated in errors."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, hide_input_in_errors=True
    )


class NoArguments(Arguments):
    """Nothing to ask."""


class OnCluster(Arguments):
    """A cluster."""

    cluster_id: ClusterId


class OnBranch(OnCluster):
    """A branch of a cluster."""

    branch_id: Annotated[str, _text(128, "Id or name of the branch.")]


class OnSqlUser(OnCluster):
    """A SQL user of a cluster."""

    user_name: Annotated[str, _text(64, "Name of the SQL user.")]


class NewCluster(Arguments):
    """A cluster to create."""

    display_name: DisplayName
    region: Annotated[str, _text(128, "Full name of the region, as regions/aws-us-east-1.")]
    spending_limit_monthly_usd_cents: Annotated[
        int, Field(ge=0, le=10_000_000, description="Monthly spending limit in US cents.")
    ] = 0


class PastState(OnCluster):
    """A past state of a cluster."""

    point_in_time: Annotated[
        AwareDatetime, Field(description="The instant to restore, with its time zone.")
    ]

    @property
    def instant(self) -> str:
        """The instant in UTC, in one spelling."""
        return self.point_in_time.astimezone(UTC).isoformat(timespec="seconds")


class OfBackup(Arguments):
    """A backup."""

    backup_id: Annotated[str, _text(128, "Id of the backup; tidb_list_backups has them.")]


class Named(OnCluster):
    """A thing of a cluster with a new name."""

    display_name: DisplayName


class Statement(OnCluster):
    """One SQL statement."""

    database: Annotated[str, _text(64, "Database that the statement runs in.")]
    sql: Annotated[str, _text(32_768, "One SQL statement.")]


class UserWithRole(OnSqlUser):
    """A SQL user and the role it is to have."""

    role: Annotated[Role, Field(description="The role.")]
