"""What stands behind one call: the platform under a key, a way to run SQL, and the boundary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from approvaltrail.server.database import Database, MintedDatabase, PinnedDatabase
from approvaltrail.server.errors import ToolProblemError
from approvaltrail.server.platform.protocol import MAXIMUM_PAGES, Platform, Platforms
from approvaltrail.server.platform.values import ApiKey, Backup, Branch, Cluster, SqlUser
from approvaltrail.server.problems import (
    NO_AUTHORITY,
    OUTSIDE_BOUNDARY,
    Problem,
    ambiguous,
    not_found,
)

_T = TypeVar("_T")
SqlRunner = Callable[[Platform], Database]
"""Makes what runs SQL under the authority of one call."""


class AbsentError(ToolProblemError):
    """The thing does not exist: a fact. `given` is what the caller called it."""

    def __init__(self, problem: Problem, given: str) -> None:
        """Take the answer and the caller's word for the thing."""
        super().__init__(problem)
        self.given = given


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The one SQL login of a deployment, and the cluster to which it leads."""

    cluster_id: str
    database: PinnedDatabase


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The authority of one call."""

    authority: Platform | None
    boundary: frozenset[str] = frozenset()
    pinned: Pinned | None = None
    tls: bool = True
    runner: SqlRunner | None = None
    """Runs SQL instead of a login that is made for each statement."""

    @property
    def platform(self) -> Platform:
        """The platform; an answer of its own where no key stands behind the call."""
        if self.authority is None:
            raise ToolProblemError(NO_AUTHORITY)
        return self.authority

    async def cluster(self, given: str) -> Cluster:
        """Resolve an id or a name, whatever its case and the spaces around it.

        Raises:
            AbsentError: there is none within reach.
            ToolProblemError: several have the name, or it lies outside the boundary.
            PlatformError: it could not be found out.
        """
        text = given.strip()
        found = await self.platform.get_cluster(text) if text.isdecimal() else None
        if found is None:
            found = await self._by_name(text)
        if not self.within(found.cluster_id):
            raise ToolProblemError(OUTSIDE_BOUNDARY)
        return found

    async def clusters(self) -> tuple[tuple[Cluster, ...], bool]:
        """List the clusters within reach and boundary; say whether the listing is complete."""
        found: list[Cluster] = []
        page: str | None = None
        for _ in range(MAXIMUM_PAGES):
            answer = await self.platform.list_clusters(page)
            found += answer.clusters
            page = answer.next_page
            if page is None:
                break
        kept = tuple(cluster for cluster in found if self.within(cluster.cluster_id))
        return kept, page is None

    async def branch(self, cluster: Cluster, given: str) -> Branch:
        """Resolve a branch by id or name; errors as `cluster`."""
        text = given.strip()
        branches = await self.platform.list_branches(cluster.cluster_id)
        exact = [branch for branch in branches if branch.branch_id == text]
        named = [b for b in branches if b.display_name.casefold() == text.casefold()]
        return _only(exact or named, "branch", "branches", text)

    async def sql_user(self, cluster: Cluster, given: str) -> SqlUser:
        """Resolve a SQL user by its name, with or without the cluster's prefix."""
        text = given.strip()
        names = {text, f"{cluster.user_prefix}.{text}" if cluster.user_prefix else text}
        users = await self.platform.list_sql_users(cluster.cluster_id)
        found = [user for user in users if user.user_name in names]
        exact = [user for user in found if user.user_name == text]
        return _only(exact or found, "SQL user", "SQL users", text)

    async def backup(self, given: str) -> Backup:
        """Resolve a backup by its id."""
        found = await self.platform.get_backup(given.strip())
        if found is None:
            raise AbsentError(not_found("backup"), given.strip())
        return found

    def sql_on(self, cluster_id: str) -> Database:
        """Return what runs SQL on a cluster: the pinned login where there is one, else a new user.

        A pinned login ignores what cluster is asked for, so another one is refused here.
        """
        if self.pinned is None:
            if self.runner is not None:
                return self.runner(self.platform)
            return MintedDatabase(self.platform, tls=self.tls)
        if self.pinned.cluster_id != cluster_id:
            raise ToolProblemError(OUTSIDE_BOUNDARY)
        return self.pinned.database

    def within(self, cluster_id: str) -> bool:
        """Say whether a cluster lies within the boundary."""
        return not self.boundary or cluster_id in self.boundary

    async def _by_name(self, text: str) -> Cluster:
        """Search the whole reach, so that a name outside the boundary is answered as such."""
        everywhere = Access(authority=self.authority)
        found, complete = await everywhere.clusters()
        named = [item for item in found if item.display_name.casefold() == text.casefold()]
        if not named and not complete:
            raise ToolProblemError(ambiguous("clusters beyond the listing's bound may"))
        return _only(named, "cluster", "clusters", text)


def _only(found: list[_T], kind: str, kinds: str, given: str) -> _T:
    if not found:
        raise AbsentError(not_found(kind), given)
    if len(found) > 1:
        raise ToolProblemError(ambiguous(kinds))
    return found[0]


def access_for(
    key: ApiKey | None,
    own: ApiKey | None,
    platforms: Platforms,
    *,
    boundary: frozenset[str],
    pinned: Pinned | None,
    tls: bool,
    runner: SqlRunner | None = None,
) -> Access:
    """Return the access of a call: under the caller's own key, else under the server's.

    Args:
        key: the server's own key.
        own: the caller's key; the server's SQL login is not lent to who brings one.
        platforms: the platform for any key.
        boundary: the clusters that may be touched.
        pinned: the server's SQL login.
        tls: whether SQL endpoints are entered by TLS.
        runner: runs SQL instead of a login that is made for each statement.
    """
    used = own or key
    return Access(
        authority=None if used is None else platforms.under(used),
        boundary=boundary,
        pinned=None if own is not None else pinned,
        tls=tls,
        runner=runner,
    )
