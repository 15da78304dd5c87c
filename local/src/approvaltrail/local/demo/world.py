"""The cluster platform behind the demonstration: in memory, and slow as real ones are.

What somebody deletes or creates takes the platform longer than the demonstration lasts, so that
all looks as before and only what was recorded tells that it happened.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final

from approvaltrail.server.database import Rows
from approvaltrail.server.errors import PlatformRejectedError
from approvaltrail.server.platform import Platform
from approvaltrail.server.platform.values import ApiKey, Backup, Branch, Cluster, SqlUser
from approvaltrail.server.testing import Grant, MemoryPlatform, World

BRANCHES: Final = ("main", "feature-billing", "hotfix-412", "load-test")
USERS: Final = ("reporting", "etl", "grafana", "migration")
_BACKUP_TAKEN_AT: Final = "2026-03-07T02:00:00Z"


class DemoWorld:
    """Each tenant's clusters, made when they are first named, and its people's keys to them."""

    def __init__(self) -> None:
        self._world = World()
        self._keys: dict[tuple[str, str], ApiKey] = {}
        self._ids: dict[tuple[str, str], str] = {}
        self._broken: set[str] = set()

    def key(self, tenant: str, principal: str) -> ApiKey:
        """Return somebody's key, which reaches their tenant's clusters and no others.

        A key is an identity and an authority in one: callers present it as their credential.
        """
        known = self._keys.get((tenant, principal))
        if known is not None:
            return known
        key = ApiKey(public=f"DEMO{len(self._keys):04}", private=secrets.token_urlsafe(24))
        self._keys[tenant, principal] = key
        self._admit(key, frozenset(self._of(tenant)))
        return key

    def cluster(self, tenant: str, name: str) -> str:
        """Return the id of a tenant's cluster."""
        known = self._ids.get((tenant, name))
        return known or self._add(tenant, name)

    def backup(self, tenant: str, name: str) -> str:
        """Return the id of the backup of a tenant's cluster."""
        return f"backup-{self.cluster(tenant, name)}"

    def break_next(self, name: str) -> None:
        """Have the creation of a cluster of this name fail once."""
        self._broken.add(name)

    def breaks(self, name: str) -> bool:
        """Say whether this creation is to fail; the next one is not."""
        broken = name in self._broken
        self._broken.discard(name)
        return broken

    def under(self, key: ApiKey) -> Platform:
        """Return the platform under this key."""
        return _SlowPlatform(self, self._world, key)

    async def close(self) -> None:
        """Let go of nothing."""

    def _add(self, tenant: str, name: str) -> str:
        made = self._world.add_cluster(name)
        identity = made.cluster_id
        self._world.branches[identity] = [
            Branch(branch_id=f"bran-{identity}-{branch}", display_name=branch, state="ACTIVE")
            for branch in BRANCHES
        ]
        self._world.users[identity] += [
            SqlUser(user_name=f"{made.user_prefix}.{user}", role="role_readwrite") for user in USERS
        ]
        backup = f"backup-{identity}"
        self._world.backups[backup] = Backup(
            backup_id=backup, cluster_id=identity, created_at=_BACKUP_TAKEN_AT
        )
        self._ids[tenant, name] = identity
        for (owner, _), key in self._keys.items():
            if owner == tenant:
                reached = self._world.grants[key.public].clusters or frozenset()
                self._admit(key, reached | {identity})
        return identity

    def _admit(self, key: ApiKey, clusters: frozenset[str]) -> None:
        self._world.grants[key.public] = Grant(private=key.private, clusters=clusters)

    def _of(self, tenant: str) -> Iterator[str]:
        return (identity for (owner, _), identity in self._ids.items() if owner == tenant)


class _SlowPlatform(MemoryPlatform):
    """Takes every change and shows none of them yet."""

    def __init__(self, demo: DemoWorld, world: World, key: ApiKey) -> None:
        super().__init__(world, key)
        self._demo = demo

    async def create_cluster(
        self,
        *,
        display_name: str,
        region: str,
        spending_limit_cents: int,  # noqa: ARG002 - a world has no bills
    ) -> Cluster:
        if self._demo.breaks(display_name):
            raise PlatformRejectedError("The cluster platform answered 409: out of capacity.")
        return Cluster(cluster_id="1", display_name=display_name, region=region, state="CREATING")

    async def update_cluster(self, cluster_id: str, *, display_name: str) -> None:
        pass

    async def delete_cluster(self, cluster_id: str) -> None:
        pass

    async def create_branch(self, cluster_id: str, *, display_name: str) -> Branch:  # noqa: ARG002
        return Branch(branch_id="bran-1", display_name=display_name, state="CREATING")

    async def delete_branch(self, cluster_id: str, branch_id: str) -> None:
        pass

    async def create_sql_user(
        self,
        cluster_id: str,  # noqa: ARG002
        *,
        user_name: str,
        role: str,
        password: str,  # noqa: ARG002 - a world opens no connections
    ) -> SqlUser:
        return SqlUser(user_name=user_name, role=role)

    async def update_sql_user(self, cluster_id: str, user_name: str, *, role: str) -> None:
        pass

    async def delete_sql_user(self, cluster_id: str, user_name: str) -> None:
        pass

    async def create_backup(self, cluster_id: str, *, display_name: str) -> Backup:  # noqa: ARG002
        return Backup(backup_id="backup-1", cluster_id=cluster_id)

    async def restore_backup(self, backup_id: str) -> str:  # noqa: ARG002
        return "1"

    async def restore_cluster(self, cluster_id: str, *, point_in_time: str) -> str:  # noqa: ARG002
        return "1"


class ScratchDatabase:
    """Takes every statement and changes one row of nothing."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    async def run(
        self,
        cluster: Cluster,  # noqa: ARG002
        database: str,  # noqa: ARG002
        statement: str,  # noqa: ARG002
        parameters: Mapping[str, Any] | None = None,  # noqa: ARG002
        *,
        changes: bool,
    ) -> Rows:
        """Answer as a server does that ran it."""
        return Rows(columns=(), rows=(), changed_rows=int(changes), truncated=False)
