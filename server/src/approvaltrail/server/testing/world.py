"""A cluster platform's state: clusters, what belongs to them, and what each key may see."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from approvaltrail.server.platform.values import ApiKey, Backup, Branch, Cluster, SqlUser


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a key may touch."""

    private: str = field(repr=False)
    clusters: frozenset[str] | None = None
    """None: everything, the organisation included."""

    def reaches(self, cluster_id: str) -> bool:
        """Say whether the key may touch a cluster."""
        return self.clusters is None or cluster_id in self.clusters


class World:
    """Everything there is. `performed` holds every change, in order, as it was made."""

    def __init__(self) -> None:
        self.clusters: dict[str, Cluster] = {}
        self.branches: dict[str, list[Branch]] = {}
        self.users: dict[str, list[SqlUser]] = {}
        self.backups: dict[str, Backup] = {}
        self.grants: dict[str, Grant] = {}
        self.performed: list[tuple[str, str]] = []
        self.silent = False
        """The platform gives no usable answer."""
        self._ids = count(10_036_201_305_668_697_000)
        self._keys = count(1)

    def add_cluster(
        self,
        display_name: str,
        *,
        cluster_id: str | None = None,
        organization: str = "1372813089187041280",
        region: str = "regions/aws-us-east-1",
        host: str | None = None,
        port: int | None = None,
    ) -> Cluster:
        """Add a cluster with a SQL user."""
        identity = cluster_id or self.new_id()
        cluster = Cluster(
            cluster_id=identity,
            display_name=display_name,
            region=region,
            state="ACTIVE",
            organization=organization,
            user_prefix=f"p{identity[-8:]}",
            host=host or "gateway01.example.org",
            port=port or 4000,
        )
        self.clusters[identity] = cluster
        self.branches[identity] = []
        self.users[identity] = [SqlUser(user_name=f"{cluster.user_prefix}.root", role="role_admin")]
        return cluster

    def add_key(self, *clusters: Cluster, wide: bool = False) -> ApiKey:
        """Issue a key for these clusters; a wide one sees the organisation."""
        number = next(self._keys)
        key = ApiKey(public=f"PUBLIC{number:04}", private=f"private-of-key-{number:04}")
        reached = None if wide else frozenset(cluster.cluster_id for cluster in clusters)
        self.grants[key.public] = Grant(private=key.private, clusters=reached)
        return key

    def new_id(self) -> str:
        """Return an id that nothing has."""
        return str(next(self._ids))

    def note(self, action: str, name: str) -> None:
        """Note a change that was made."""
        self.performed.append((action, name))


def small_world() -> tuple[World, ApiKey]:
    """Return a world of one cluster, and a key that is scoped to it."""
    world = World()
    cluster = world.add_cluster("prod-1")
    world.branches[cluster.cluster_id].append(
        Branch(branch_id="bran-1", display_name="staging", state="ACTIVE")
    )
    world.backups["backup-1"] = Backup(
        backup_id="backup-1", cluster_id=cluster.cluster_id, created_at="2026-01-01T00:00:00Z"
    )
    return world, world.add_key(cluster)
