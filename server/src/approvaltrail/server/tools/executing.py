"""What the gated tools do once they are confirmed: exactly what the plan says."""

from __future__ import annotations

import secrets
from typing import Any

from approvaltrail.gate import Plan
from approvaltrail.server.errors import PlatformRejectedError
from approvaltrail.server.tools.access import Access


def _detail(plan: Plan, name: str) -> str:
    return str(plan.details[name])


def _target(plan: Plan) -> str:
    return plan.target or ""


async def delete_cluster(plan: Plan, access: Access) -> dict[str, Any]:
    """Delete a cluster."""
    await access.platform.delete_cluster(_detail(plan, "clusterId"))
    return {"deleted": _target(plan), "clusterId": _detail(plan, "clusterId")}


async def delete_branch(plan: Plan, access: Access) -> dict[str, Any]:
    """Delete a branch."""
    await access.platform.delete_branch(_detail(plan, "clusterId"), _detail(plan, "branchId"))
    return {"deleted": _target(plan), "branchId": _detail(plan, "branchId")}


async def delete_sql_user(plan: Plan, access: Access) -> dict[str, Any]:
    """Delete a SQL user."""
    await access.platform.delete_sql_user(_detail(plan, "clusterId"), _target(plan))
    return {"deleted": _target(plan)}


async def create_cluster(plan: Plan, access: Access) -> dict[str, Any]:
    """Create a cluster."""
    limit = plan.details["spendingLimitMonthlyUsdCents"]
    made = await access.platform.create_cluster(
        display_name=_target(plan),
        region=_detail(plan, "region"),
        spending_limit_cents=limit if isinstance(limit, int) else 0,
    )
    return {"created": made.shown()}


async def restore_cluster(plan: Plan, access: Access) -> dict[str, Any]:
    """Restore a past state into a new cluster."""
    made = await access.platform.restore_cluster(
        _detail(plan, "clusterId"), point_in_time=_detail(plan, "pointInTime")
    )
    return {"newClusterId": made}


async def restore_backup(plan: Plan, access: Access) -> dict[str, Any]:
    """Restore a backup into a new cluster."""
    return {"newClusterId": await access.platform.restore_backup(_detail(plan, "backupId"))}


async def create_backup(plan: Plan, access: Access) -> dict[str, Any]:
    """Take a backup."""
    made = await access.platform.create_backup(
        _detail(plan, "clusterId"), display_name=_detail(plan, "displayName")
    )
    return {"backupId": made.backup_id}


async def execute(plan: Plan, access: Access) -> dict[str, Any]:
    """Run a statement."""
    cluster = await access.platform.get_cluster(_detail(plan, "clusterId"))
    if cluster is None:
        raise PlatformRejectedError("The cluster is gone.")
    database = access.sql_on(cluster.cluster_id)
    rows = await database.run(
        cluster, _detail(plan, "database"), _detail(plan, "sql"), changes=True
    )
    return rows.structured()


async def create_branch(plan: Plan, access: Access) -> dict[str, Any]:
    """Create a branch."""
    made = await access.platform.create_branch(
        _detail(plan, "clusterId"), display_name=_target(plan)
    )
    return {"branchId": made.branch_id, "displayName": made.display_name}


async def create_sql_user(plan: Plan, access: Access) -> dict[str, Any]:
    """Create a SQL user; the answer holds its password, which is kept nowhere."""
    password = secrets.token_urlsafe(24)
    made = await access.platform.create_sql_user(
        _detail(plan, "clusterId"),
        user_name=_target(plan),
        role=_detail(plan, "role"),
        password=password,
    )
    return {"userName": made.user_name, "role": made.role, "password": password}


async def update_cluster(plan: Plan, access: Access) -> dict[str, Any]:
    """Rename a cluster."""
    name = _detail(plan, "displayName")
    await access.platform.update_cluster(_detail(plan, "clusterId"), display_name=name)
    return {"clusterId": _detail(plan, "clusterId"), "displayName": name}


async def update_sql_user(plan: Plan, access: Access) -> dict[str, Any]:
    """Give a SQL user another role."""
    await access.platform.update_sql_user(
        _detail(plan, "clusterId"), _target(plan), role=_detail(plan, "role")
    )
    return {"userName": _target(plan), "role": _detail(plan, "role")}
