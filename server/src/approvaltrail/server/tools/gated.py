"""The twelve tools that change something, each behind the gate."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from approvaltrail.gate import TOOLS
from approvaltrail.server.tools import executing, planning
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
from approvaltrail.server.tools.definitions import GatedTool

_ROWS: tuple[tuple[str, type[BaseModel], str], ...] = (
    ("delete_cluster", OnCluster, "Delete a cluster with all of its data."),
    ("delete_branch", OnBranch, "Delete a branch of a cluster with its data."),
    ("delete_sql_user", OnSqlUser, "Delete a SQL user of a cluster."),
    ("create_cluster", NewCluster, "Create a cluster, which costs money."),
    ("restore_cluster", PastState, "Restore a past state of a cluster into a new one."),
    ("restore_backup", OfBackup, "Restore a backup into a new cluster."),
    ("create_backup", Named, "Take a backup of a cluster."),
    ("execute", Statement, "Run one SQL statement that may change data or schema."),
    ("create_branch", Named, "Create a branch of a cluster."),
    ("create_sql_user", UserWithRole, "Create a SQL user; the answer holds its password, once."),
    ("update_cluster", Named, "Rename a cluster."),
    ("update_sql_user", UserWithRole, "Give a SQL user another role."),
)


def gated_tools() -> tuple[GatedTool, ...]:
    """Return the twelve; a test holds them to the gate's table."""
    return tuple(_tool(*row) for row in _ROWS)


def _tool(verb: str, arguments: type[BaseModel], description: str) -> GatedTool:
    plan: Any = getattr(planning, verb)
    execute: Any = getattr(executing, verb)
    return GatedTool(
        tool=TOOLS[f"tidb_{verb}"],
        description=description,
        arguments=arguments,
        plan=plan,
        execute=execute,
    )
