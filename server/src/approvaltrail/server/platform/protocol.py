"""The seam to the cluster platform."""

from __future__ import annotations

from typing import Protocol

from approvaltrail.server.platform.values import (
    ApiKey,
    Backup,
    Branch,
    Cluster,
    ClusterPage,
    Projects,
    SqlUser,
)

PAGE_SIZE = 50
MAXIMUM_PAGES = 20
"""A listing is followed this far; a name further down must be given as an id."""


class Platform(Protocol):
    """The cluster API under one key.

    Questions answer with None or an empty tuple where a thing does not exist: that is a fact. All
    else that goes wrong is a `PlatformError`: refused (this key may not), rejected (nothing done),
    silent (a question without an answer) or outcome unknown (a change without an answer).
    """

    async def projects(self) -> Projects:
        """Ask for the organisation's projects: a probe of how far the key sees."""
        ...

    async def list_clusters(self, page: str | None = None) -> ClusterPage:
        """List the clusters that the key reaches, a page at a time."""
        ...

    async def get_cluster(self, cluster_id: str) -> Cluster | None:
        """Return one cluster."""
        ...

    async def create_cluster(
        self, *, display_name: str, region: str, spending_limit_cents: int
    ) -> Cluster:
        """Create a cluster: it costs money."""
        ...

    async def update_cluster(self, cluster_id: str, *, display_name: str) -> None:
        """Rename a cluster."""
        ...

    async def delete_cluster(self, cluster_id: str) -> None:
        """Delete a cluster with its data."""
        ...

    async def list_branches(self, cluster_id: str) -> tuple[Branch, ...]:
        """List a cluster's branches."""
        ...

    async def create_branch(self, cluster_id: str, *, display_name: str) -> Branch:
        """Create a branch."""
        ...

    async def delete_branch(self, cluster_id: str, branch_id: str) -> None:
        """Delete a branch with its data."""
        ...

    async def list_sql_users(self, cluster_id: str) -> tuple[SqlUser, ...]:
        """List a cluster's SQL users."""
        ...

    async def create_sql_user(
        self, cluster_id: str, *, user_name: str, role: str, password: str
    ) -> SqlUser:
        """Create a SQL user."""
        ...

    async def update_sql_user(self, cluster_id: str, user_name: str, *, role: str) -> None:
        """Give a SQL user another role."""
        ...

    async def delete_sql_user(self, cluster_id: str, user_name: str) -> None:
        """Delete a SQL user."""
        ...

    async def list_backups(self, cluster_id: str) -> tuple[Backup, ...]:
        """List a cluster's backups."""
        ...

    async def get_backup(self, backup_id: str) -> Backup | None:
        """Return one backup."""
        ...

    async def create_backup(self, cluster_id: str, *, display_name: str) -> Backup:
        """Take a backup: it costs money."""
        ...

    async def restore_backup(self, backup_id: str) -> str:
        """Restore a backup into a new cluster, which costs money; return its id."""
        ...

    async def restore_cluster(self, cluster_id: str, *, point_in_time: str) -> str:
        """Restore a past state into a new cluster, which costs money; return its id."""
        ...


class Platforms(Protocol):
    """Gives the platform as one key sees it."""

    def under(self, key: ApiKey) -> Platform:
        """Return the platform under this key."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
