"""The cluster API over HTTP.

Hosts and paths are the published ones of TiDB Cloud: projects under `api.tidbcloud.com`, clusters,
branches, backups and restores under `serverless.tidbapi.com`, SQL users under `iam.tidbapi.com`.
Keys authenticate by HTTP digest. Taking a backup is not in the published list; its path follows
that of the backups listing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import httpx

from approvaltrail.server.platform.answers import (
    backup_of,
    branch_of,
    checked,
    cluster_of,
    items_of,
    no_answer,
    sql_user_of,
    text_of,
)
from approvaltrail.server.platform.protocol import MAXIMUM_PAGES, PAGE_SIZE
from approvaltrail.server.platform.values import (
    ApiKey,
    Backup,
    Branch,
    Cluster,
    ClusterPage,
    Projects,
    SqlUser,
)

FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
TIMEOUT_SECONDS: Final = 15.0
_CONNECTIONS: Final = httpx.Limits(max_connections=32, max_keepalive_connections=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformAddresses:
    """Where the three parts of the API are."""

    projects: str = "https://api.tidbcloud.com/api/v1beta"
    clusters: str = "https://serverless.tidbapi.com/v1beta1"
    identities: str = "https://iam.tidbapi.com/v1beta1"


class HttpPlatforms:
    """The cluster API for any key, over one pool of connections."""

    def __init__(
        self,
        addresses: PlatformAddresses | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._addresses = addresses or PlatformAddresses()
        self._client = httpx.AsyncClient(
            transport=transport, timeout=timeout_seconds, limits=_CONNECTIONS
        )

    def under(self, key: ApiKey) -> HttpPlatform:
        """Return the platform under this key."""
        return HttpPlatform(self._client, self._addresses, key)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class HttpPlatform:
    """The cluster API under one key; see `Platform`."""

    def __init__(
        self, client: httpx.AsyncClient, addresses: PlatformAddresses, key: ApiKey
    ) -> None:
        self._client = client
        self._at = addresses
        self._auth = httpx.DigestAuth(key.public, key.private)

    async def projects(self) -> Projects:
        """Ask for one project; a 403 says that the key cannot see the organisation."""
        answer = await self._send(
            "GET", f"{self._at.projects}/projects", params={"page": 1, "page_size": 1}
        )
        if answer.status_code == FORBIDDEN:
            return Projects.HIDDEN
        checked(answer, change=False)
        return Projects.VISIBLE

    async def list_clusters(self, page: str | None = None) -> ClusterPage:
        """List a page of clusters."""
        params: dict[str, Any] = {"pageSize": PAGE_SIZE}
        if page is not None:
            params["pageToken"] = page
        body = await self._ask(f"{self._at.clusters}/clusters", params)
        clusters = tuple(cluster_of(item) for item in items_of(body or {}, "clusters"))
        return ClusterPage(clusters=clusters, next_page=(body or {}).get("nextPageToken") or None)

    async def get_cluster(self, cluster_id: str) -> Cluster | None:
        """Return one cluster."""
        body = await self._ask(self._cluster(cluster_id))
        return None if body is None else cluster_of(body)

    async def create_cluster(
        self, *, display_name: str, region: str, spending_limit_cents: int
    ) -> Cluster:
        """Create a cluster."""
        wanted = {
            "displayName": display_name,
            "region": {"name": region},
            "spendingLimit": {"monthly": spending_limit_cents},
        }
        return cluster_of(await self._change("POST", f"{self._at.clusters}/clusters", wanted))

    async def update_cluster(self, cluster_id: str, *, display_name: str) -> None:
        """Rename a cluster."""
        wanted = {"cluster": {"displayName": display_name}, "updateMask": "displayName"}
        await self._change("PATCH", self._cluster(cluster_id), wanted)

    async def delete_cluster(self, cluster_id: str) -> None:
        """Delete a cluster."""
        await self._change("DELETE", self._cluster(cluster_id))

    async def list_branches(self, cluster_id: str) -> tuple[Branch, ...]:
        """List branches."""
        found = await self._all(f"{self._cluster(cluster_id)}/branches", "branches")
        return tuple(map(branch_of, found))

    async def create_branch(self, cluster_id: str, *, display_name: str) -> Branch:
        """Create a branch."""
        wanted = {"displayName": display_name}
        return branch_of(
            await self._change("POST", f"{self._cluster(cluster_id)}/branches", wanted)
        )

    async def delete_branch(self, cluster_id: str, branch_id: str) -> None:
        """Delete a branch."""
        path = f"{self._cluster(cluster_id)}/branches/{quote(branch_id, safe='')}"
        await self._change("DELETE", path)

    async def list_sql_users(self, cluster_id: str) -> tuple[SqlUser, ...]:
        """List SQL users."""
        found = await self._all(self._users(cluster_id), "sqlUsers")
        return tuple(map(sql_user_of, found))

    async def create_sql_user(
        self, cluster_id: str, *, user_name: str, role: str, password: str
    ) -> SqlUser:
        """Create a SQL user, its name under the cluster's prefix."""
        wanted = {
            "userName": user_name,
            "builtinRole": role,
            "password": password,
            "authMethod": "mysql_native_password",
            "autoPrefix": True,
        }
        return sql_user_of(await self._change("POST", self._users(cluster_id), wanted))

    async def update_sql_user(self, cluster_id: str, user_name: str, *, role: str) -> None:
        """Give a SQL user another role."""
        path = f"{self._users(cluster_id)}/{quote(user_name, safe='')}"
        await self._change("PATCH", path, {"builtinRole": role})

    async def delete_sql_user(self, cluster_id: str, user_name: str) -> None:
        """Delete a SQL user."""
        await self._change("DELETE", f"{self._users(cluster_id)}/{quote(user_name, safe='')}")

    async def list_backups(self, cluster_id: str) -> tuple[Backup, ...]:
        """List backups."""
        found = await self._all(f"{self._at.clusters}/backups", "backups", clusterId=cluster_id)
        return tuple(map(backup_of, found))

    async def get_backup(self, backup_id: str) -> Backup | None:
        """Return one backup."""
        body = await self._ask(f"{self._at.clusters}/backups/{quote(backup_id, safe='')}")
        return None if body is None else backup_of(body)

    async def create_backup(self, cluster_id: str, *, display_name: str) -> Backup:
        """Take a backup."""
        wanted = {"clusterId": cluster_id, "displayName": display_name}
        return backup_of(await self._change("POST", f"{self._at.clusters}/backups", wanted))

    async def restore_backup(self, backup_id: str) -> str:
        """Restore a backup into a new cluster."""
        return await self._restore({"snapshot": {"backupId": backup_id}})

    async def restore_cluster(self, cluster_id: str, *, point_in_time: str) -> str:
        """Restore a past state into a new cluster."""
        return await self._restore(
            {"pointInTime": {"clusterId": cluster_id, "backupTime": point_in_time}}
        )

    async def _restore(self, wanted: Mapping[str, Any]) -> str:
        body = await self._change("POST", f"{self._at.clusters}/clusters:restore", wanted)
        return text_of(body, "clusterId")

    def _cluster(self, cluster_id: str) -> str:
        return f"{self._at.clusters}/clusters/{quote(cluster_id, safe='')}"

    def _users(self, cluster_id: str) -> str:
        return f"{self._at.identities}/clusters/{quote(cluster_id, safe='')}/sqlUsers"

    async def _all(self, url: str, name: str, **params: Any) -> list[Mapping[str, Any]]:
        """Follow a listing over its pages, within the bound."""
        found: list[Mapping[str, Any]] = []
        asked: dict[str, Any] = {"pageSize": PAGE_SIZE, **params}
        for _ in range(MAXIMUM_PAGES):
            body = await self._ask(url, asked) or {}
            found += items_of(body, name)
            if not body.get("nextPageToken"):
                break
            asked["pageToken"] = body["nextPageToken"]
        return found

    async def _ask(
        self, url: str, params: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any] | None:
        answer = await self._send("GET", url, params=params)
        if answer.status_code == NOT_FOUND:
            return None
        return checked(answer, change=False)

    async def _change(
        self, method: str, url: str, body: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        return checked(await self._send(method, url, json=body), change=True)

    async def _send(self, method: str, url: str, **named: Any) -> httpx.Response:
        try:
            return await self._client.request(method, url, auth=self._auth, **named)
        except httpx.HTTPError as error:
            raise no_answer(error, change=method != "GET") from error
