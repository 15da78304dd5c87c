"""How the gated tools' plans are made: what the arguments mean, looked up and resolved.

A plan binds what will be done. How a resource happens to look is left out: its state may change
between the two steps without changing what was approved.
"""

from __future__ import annotations

from typing import Any

from approvaltrail.gate import TOOLS, Plan
from approvaltrail.server.platform.values import Cluster
from approvaltrail.server.tools.access import Access
from approvaltrail.server.tools.arguments import (
    Named,
    NewCluster,
    OfBackup,
    OnBranch,
    OnCluster,
    OnSqlUser,
    PastState,
    Statement,
    UserWithRole,
)


def planned(name: str, target: str, summary: str, details: dict[str, Any]) -> Plan:
    """Make a plan of a tool in the gate's table."""
    row = TOOLS[name]
    return Plan(
        tool=row.name,
        target=target,
        action=row.action,
        summary=summary,
        details=details,
        reversible=row.reversible,
    )


def absent(name: str, given: str) -> Plan:
    """Make the plan for a thing that does not exist: a fact, the same every time."""
    return planned(name, given, "There is nothing to do: the target does not exist.", {})


def _name(cluster: Cluster) -> str:
    return cluster.display_name or cluster.cluster_id


async def delete_cluster(given: OnCluster, access: Access) -> Plan:
    """Plan to delete a cluster."""
    cluster = await access.cluster(given.cluster_id)
    return planned(
        "tidb_delete_cluster",
        _name(cluster),
        f"Delete the cluster {_name(cluster)} with all of its data and branches.",
        {"clusterId": cluster.cluster_id},
    )


async def delete_branch(given: OnBranch, access: Access) -> Plan:
    """Plan to delete a branch."""
    cluster = await access.cluster(given.cluster_id)
    branch = await access.branch(cluster, given.branch_id)
    return planned(
        "tidb_delete_branch",
        branch.display_name or branch.branch_id,
        f"Delete the branch {branch.display_name} of the cluster {_name(cluster)} with its data.",
        {"clusterId": cluster.cluster_id, "branchId": branch.branch_id},
    )


async def delete_sql_user(given: OnSqlUser, access: Access) -> Plan:
    """Plan to delete a SQL user."""
    cluster = await access.cluster(given.cluster_id)
    user = await access.sql_user(cluster, given.user_name)
    return planned(
        "tidb_delete_sql_user",
        user.user_name,
        f"Delete the SQL user {user.user_name} of the cluster {_name(cluster)}.",
        {"clusterId": cluster.cluster_id},
    )


async def create_cluster(given: NewCluster, access: Access) -> Plan:
    """Plan to create a cluster."""
    _ = access.platform  # no authority, no preflight
    return planned(
        "tidb_create_cluster",
        given.display_name,
        f"Create the cluster {given.display_name}, which costs money.",
        {
            "region": given.region.strip(),
            "spendingLimitMonthlyUsdCents": given.spending_limit_monthly_usd_cents,
        },
    )


async def restore_cluster(given: PastState, access: Access) -> Plan:
    """Plan to restore a past state into a new cluster."""
    cluster = await access.cluster(given.cluster_id)
    return planned(
        "tidb_restore_cluster",
        _name(cluster),
        f"Restore {_name(cluster)} as it was at {given.instant} into a NEW cluster, which costs "
        "money.",
        {"clusterId": cluster.cluster_id, "pointInTime": given.instant},
    )


async def restore_backup(given: OfBackup, access: Access) -> Plan:
    """Plan to restore a backup into a new cluster."""
    backup = await access.backup(given.backup_id)
    cluster = await access.cluster(backup.cluster_id)
    return planned(
        "tidb_restore_backup",
        _name(cluster),
        f"Restore a backup of {_name(cluster)} into a NEW cluster, which costs money.",
        {
            "backupId": backup.backup_id,
            "backupTime": backup.created_at,
            "clusterId": cluster.cluster_id,
        },
    )


async def create_backup(given: Named, access: Access) -> Plan:
    """Plan to take a backup."""
    cluster = await access.cluster(given.cluster_id)
    return planned(
        "tidb_create_backup",
        _name(cluster),
        f"Take a backup of the cluster {_name(cluster)}, which costs money.",
        {"clusterId": cluster.cluster_id, "displayName": given.display_name},
    )


async def execute(given: Statement, access: Access) -> Plan:
    """Plan to run a statement; its text is a detail, which no event carries."""
    cluster = await access.cluster(given.cluster_id)
    access.sql_on(cluster.cluster_id)
    return planned(
        "tidb_execute",
        _name(cluster),
        f"Run one SQL statement in the database {given.database} of the cluster {_name(cluster)}.",
        {"clusterId": cluster.cluster_id, "database": given.database, "sql": given.sql},
    )


async def create_branch(given: Named, access: Access) -> Plan:
    """Plan to create a branch."""
    cluster = await access.cluster(given.cluster_id)
    return planned(
        "tidb_create_branch",
        given.display_name,
        f"Create the branch {given.display_name} of the cluster {_name(cluster)}.",
        {"clusterId": cluster.cluster_id},
    )


async def create_sql_user(given: UserWithRole, access: Access) -> Plan:
    """Plan to create a SQL user; its password is made when it is, and shown once."""
    cluster = await access.cluster(given.cluster_id)
    name = given.user_name.strip()
    return planned(
        "tidb_create_sql_user",
        name,
        f"Create the SQL user {name} on the cluster {_name(cluster)} with {given.role}.",
        {"clusterId": cluster.cluster_id, "role": given.role},
    )


async def update_cluster(given: Named, access: Access) -> Plan:
    """Plan to rename a cluster."""
    cluster = await access.cluster(given.cluster_id)
    return planned(
        "tidb_update_cluster",
        _name(cluster),
        f"Rename the cluster {_name(cluster)} to {given.display_name}.",
        {"clusterId": cluster.cluster_id, "displayName": given.display_name},
    )


async def update_sql_user(given: UserWithRole, access: Access) -> Plan:
    """Plan to give a SQL user another role."""
    cluster = await access.cluster(given.cluster_id)
    user = await access.sql_user(cluster, given.user_name)
    return planned(
        "tidb_update_sql_user",
        user.user_name,
        f"Give the SQL user {user.user_name} of the cluster {_name(cluster)} {given.role}.",
        {"clusterId": cluster.cluster_id, "role": given.role},
    )
