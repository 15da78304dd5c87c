"""The platform in memory, under one key: the seam's other real implementation."""

from __future__ import annotations

from dataclasses import replace

from approvaltrail.server.errors import (
    PlatformOutcomeError,
    PlatformRefusedError,
    PlatformRejectedError,
    PlatformSilentError,
)
from approvaltrail.server.platform.protocol import PAGE_SIZE
from approvaltrail.server.platform.values import (
    ApiKey,
    Backup,
    Branch,
    Cluster,
    ClusterPage,
    Projects,
    SqlUser,
)
from approvaltrail.server.testing.world import Grant, World


class MemoryPlatforms:
    """Platforms over one world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def under(self, key: ApiKey) -> MemoryPlatform:
        """Return the platform under this key."""
        return MemoryPlatform(self._world, key)

    async def close(self) -> None:
        """Let go of nothing."""


class MemoryPlatform:
    """The platform as one key sees it; see `Platform`."""

    def __init__(self, world: World, key: ApiKey) -> None:
        self._world = world
        self._key = key

    async def projects(self) -> Projects:
        """Answer by the key's width."""
        return Projects.VISIBLE if self._grant().clusters is None else Projects.HIDDEN

    async def list_clusters(self, page: str | None = None) -> ClusterPage:
        """List the clusters that the key reaches."""
        grant, start = self._grant(), int(page or 0)
        reached = [c for name, c in self._world.clusters.items() if grant.reaches(name)]
        end = start + PAGE_SIZE
        return ClusterPage(
            clusters=tuple(reached[start:end]), next_page=str(end) if reached[end:] else None
        )

    async def get_cluster(self, cluster_id: str) -> Cluster | None:
        """Return a cluster; one that the key may not touch is refused."""
        grant = self._grant()
        found = self._world.clusters.get(cluster_id)
        if found is not None and not grant.reaches(cluster_id):
            raise PlatformRefusedError("The cluster platform answered 403.", status=403)
        return found

    async def create_cluster(
        self,
        *,
        display_name: str,
        region: str,
        spending_limit_cents: int,  # noqa: ARG002 - a world has no bills
    ) -> Cluster:
        """Create a cluster, which the key then reaches."""
        grant = self._grant(change=True)
        made = self._world.add_cluster(display_name, region=region)
        self._admit(grant, made)
        self._world.note("create_cluster", display_name)
        return made

    async def update_cluster(self, cluster_id: str, *, display_name: str) -> None:
        """Rename a cluster."""
        found = self._on(cluster_id)
        self._world.clusters[cluster_id] = replace(found, display_name=display_name)
        self._world.note("update_cluster", display_name)

    async def delete_cluster(self, cluster_id: str) -> None:
        """Delete a cluster."""
        found = self._on(cluster_id)
        del self._world.clusters[cluster_id]
        self._world.note("delete_cluster", found.display_name)

    async def list_branches(self, cluster_id: str) -> tuple[Branch, ...]:
        """List branches."""
        self._seen(cluster_id)
        return tuple(self._world.branches.get(cluster_id, ()))

    async def create_branch(self, cluster_id: str, *, display_name: str) -> Branch:
        """Create a branch."""
        self._on(cluster_id)
        made = Branch(
            branch_id=f"bran-{self._world.new_id()}", display_name=display_name, state="ACTIVE"
        )
        self._world.branches[cluster_id].append(made)
        self._world.note("create_branch", display_name)
        return made

    async def delete_branch(self, cluster_id: str, branch_id: str) -> None:
        """Delete a branch."""
        self._on(cluster_id)
        kept = [b for b in self._world.branches[cluster_id] if b.branch_id != branch_id]
        self._gone(len(kept) == len(self._world.branches[cluster_id]))
        self._world.branches[cluster_id] = kept
        self._world.note("delete_branch", branch_id)

    async def list_sql_users(self, cluster_id: str) -> tuple[SqlUser, ...]:
        """List SQL users."""
        self._seen(cluster_id)
        return tuple(self._world.users.get(cluster_id, ()))

    async def create_sql_user(
        self,
        cluster_id: str,
        *,
        user_name: str,
        role: str,
        password: str,  # noqa: ARG002 - a world opens no connections
    ) -> SqlUser:
        """Create a SQL user under the cluster's prefix."""
        prefix = self._on(cluster_id).user_prefix
        name = user_name if user_name.startswith(f"{prefix}.") else f"{prefix}.{user_name}"
        made = SqlUser(user_name=name, role=role)
        self._world.users[cluster_id].append(made)
        self._world.note("create_sql_user", name)
        return made

    async def update_sql_user(self, cluster_id: str, user_name: str, *, role: str) -> None:
        """Give a SQL user another role."""
        self._on(cluster_id)
        users = self._world.users[cluster_id]
        self._gone(user_name not in {user.user_name for user in users})
        self._world.users[cluster_id] = [
            SqlUser(user_name=user.user_name, role=role) if user.user_name == user_name else user
            for user in users
        ]
        self._world.note("update_sql_user", user_name)

    async def delete_sql_user(self, cluster_id: str, user_name: str) -> None:
        """Delete a SQL user."""
        self._on(cluster_id)
        kept = [u for u in self._world.users[cluster_id] if u.user_name != user_name]
        self._gone(len(kept) == len(self._world.users[cluster_id]))
        self._world.users[cluster_id] = kept
        self._world.note("delete_sql_user", user_name)

    async def list_backups(self, cluster_id: str) -> tuple[Backup, ...]:
        """List backups."""
        self._seen(cluster_id)
        return tuple(b for b in self._world.backups.values() if b.cluster_id == cluster_id)

    async def get_backup(self, backup_id: str) -> Backup | None:
        """Return a backup."""
        found = self._world.backups.get(backup_id)
        if found is not None:
            self._seen(found.cluster_id)
        return found

    async def create_backup(self, cluster_id: str, *, display_name: str) -> Backup:
        """Take a backup."""
        self._on(cluster_id)
        made = Backup(
            backup_id=f"backup-{self._world.new_id()}",
            cluster_id=cluster_id,
            created_at="2026-01-02T00:00:00Z",
        )
        self._world.backups[made.backup_id] = made
        self._world.note("create_backup", display_name)
        return made

    async def restore_backup(self, backup_id: str) -> str:
        """Restore a backup into a new cluster."""
        found = self._world.backups.get(backup_id)
        self._gone(found is None)
        return self._restored(found.cluster_id if found else "", "restore_backup")

    async def restore_cluster(self, cluster_id: str, *, point_in_time: str) -> str:  # noqa: ARG002 - a world has no past
        """Restore a past state into a new cluster."""
        return self._restored(cluster_id, "restore_cluster")

    def _restored(self, cluster_id: str, action: str) -> str:
        origin = self._on(cluster_id)
        made = self._world.add_cluster(f"{origin.display_name}-restored")
        self._admit(self._grant(change=True), made)
        self._world.note(action, origin.display_name)
        return made.cluster_id

    def _grant(self, *, change: bool = False) -> Grant:
        if self._world.silent:
            kind = PlatformOutcomeError if change else PlatformSilentError
            raise kind("The cluster platform answered 503.", status=503)
        grant = self._world.grants.get(self._key.public)
        if grant is None or grant.private != self._key.private:
            raise PlatformRefusedError("The cluster platform answered 401.", status=401)
        return grant

    def _seen(self, cluster_id: str) -> None:
        if not self._grant().reaches(cluster_id):
            raise PlatformRefusedError("The cluster platform answered 403.", status=403)

    def _on(self, cluster_id: str) -> Cluster:
        grant = self._grant(change=True)
        if not grant.reaches(cluster_id):
            raise PlatformRefusedError("The cluster platform answered 403.", status=403)
        found = self._world.clusters.get(cluster_id)
        if found is None:
            raise PlatformRejectedError("The cluster platform answered 404.", status=404)
        return found

    def _gone(self, missing: bool) -> None:  # noqa: FBT001 - private
        if missing:
            raise PlatformRejectedError("The cluster platform answered 404.", status=404)

    def _admit(self, grant: Grant, made: Cluster) -> None:
        if grant.clusters is not None:
            self._world.grants[self._key.public] = replace(
                grant, clusters=grant.clusters | {made.cluster_id}
            )
