"""The tools with which a caller looks around; here the caller does choose the cluster."""

from __future__ import annotations

from typing import Any

from approvaltrail.server.platform.values import shown
from approvaltrail.server.reach import reach_of
from approvaltrail.server.tools.access import Access
from approvaltrail.server.tools.arguments import NoArguments, OnCluster
from approvaltrail.server.tools.definitions import FreeTool


async def list_clusters(_given: NoArguments, access: Access) -> dict[str, Any]:
    """List the clusters within reach and boundary."""
    found, complete = await access.clusters()
    return {"clusters": [cluster.shown() for cluster in found], "complete": complete}


async def describe_cluster(given: OnCluster, access: Access) -> dict[str, Any]:
    """Describe one cluster."""
    return (await access.cluster(given.cluster_id)).shown()


async def list_branches(given: OnCluster, access: Access) -> dict[str, Any]:
    """List a cluster's branches."""
    cluster = await access.cluster(given.cluster_id)
    found = await access.platform.list_branches(cluster.cluster_id)
    return {"branches": [shown(branch) for branch in found]}


async def list_sql_users(given: OnCluster, access: Access) -> dict[str, Any]:
    """List a cluster's SQL users."""
    cluster = await access.cluster(given.cluster_id)
    found = await access.platform.list_sql_users(cluster.cluster_id)
    return {"sqlUsers": [shown(user) for user in found]}


async def list_backups(given: OnCluster, access: Access) -> dict[str, Any]:
    """List a cluster's backups."""
    cluster = await access.cluster(given.cluster_id)
    found = await access.platform.list_backups(cluster.cluster_id)
    return {"backups": [shown(backup) for backup in found]}


async def describe_reach(_given: NoArguments, access: Access) -> dict[str, Any]:
    """Say what the credential behind this call reaches."""
    reach = await reach_of(access.platform)
    return {
        "breadth": reach.breadth.value,
        "statement": reach.statement(),
        "boundary": sorted(access.boundary),
    }


EXPLORATION = (
    FreeTool(
        name="tidb_list_clusters",
        description="List the clusters that this credential reaches.",
        arguments=NoArguments,
        run=list_clusters,
    ),
    FreeTool(
        name="tidb_describe_cluster",
        description="Describe one cluster.",
        arguments=OnCluster,
        run=describe_cluster,
    ),
    FreeTool(
        name="tidb_list_branches",
        description="List the branches of a cluster.",
        arguments=OnCluster,
        run=list_branches,
    ),
    FreeTool(
        name="tidb_list_sql_users",
        description="List the SQL users of a cluster.",
        arguments=OnCluster,
        run=list_sql_users,
    ),
    FreeTool(
        name="tidb_list_backups",
        description="List the backups of a cluster.",
        arguments=OnCluster,
        run=list_backups,
    ),
    FreeTool(
        name="tidb_describe_reach",
        description="Say what the credential behind this call can reach.",
        arguments=NoArguments,
        run=describe_reach,
    ),
)
