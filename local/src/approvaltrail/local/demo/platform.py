"""A cloud database platform that lives in memory: what the twelve tools act on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from approvaltrail.gate import TOOLS, Plan

_SIZES: Final = {"prod": 5, "staging": 3}
_SUB_TARGETS: Final = {
    "tidb_delete_branch": "branch",
    "tidb_create_branch": "branch",
    "tidb_delete_sql_user": "sql_user",
    "tidb_create_sql_user": "sql_user",
    "tidb_update_sql_user": "sql_user",
    "tidb_restore_backup": "backup",
}


class PlatformError(Exception):
    """The platform refused or lost an operation."""


@dataclass(slots=True)
class Cluster:
    """One cluster, as far as plans show it."""

    nodes: int
    backups: int = 2
    branches: set[str] = field(default_factory=lambda: {"main"})
    sql_users: set[str] = field(default_factory=lambda: {"app", "reporting"})

    def facts(self) -> dict[str, object]:
        """Return what a deletion would take with it."""
        return {
            "nodes": self.nodes,
            "backups": self.backups,
            "branches": sorted(self.branches),
            "sql_users": sorted(self.sql_users),
        }


class Platform:
    """Clusters by tenant and name. A cluster that nobody has named yet has a usual shape."""

    def __init__(self) -> None:
        self._clusters: dict[tuple[str, str], Cluster] = {}
        self._broken: set[str] = set()

    def cluster(self, tenant: str, name: str) -> Cluster:
        """Return a cluster, made when it is first named."""
        nodes = _SIZES.get(name.partition("-")[0], 1)
        return self._clusters.setdefault((tenant, name), Cluster(nodes=nodes))

    def break_next(self, target: str) -> None:
        """Have the next operation on this target fail."""
        self._broken.add(target)

    def plan(self, tenant: str, tool: str, arguments: Mapping[str, Any]) -> Plan:
        """Return what a call would do: facts about the target, and the arguments."""
        name = str(arguments["cluster"])
        kind = _SUB_TARGETS.get(tool)
        target = f"{name}/{arguments[kind]}" if kind else name
        described = TOOLS[tool]
        details: dict[str, Any] = {
            key: value for key, value in arguments.items() if key != "cluster"
        }
        details |= {"tenant": tenant, "cluster": name}
        if tool == "tidb_delete_cluster":
            details["goes_with_it"] = self.cluster(tenant, name).facts()
        return Plan(
            tool=tool,
            target=target,
            action=described.action,
            summary=f"{described.action[0].upper()}{described.action[1:]} {target}",
            details=details,
            reversible=described.reversible,
        )

    async def execute(self, plan: Plan) -> str:
        """Carry a plan out.

        Raises:
            PlatformError: the platform failed.
        """
        target = plan.target or ""
        if target in self._broken:
            self._broken.discard(target)
            raise PlatformError("the platform answered 503 after it had begun")
        cluster = self.cluster(str(plan.details["tenant"]), str(plan.details["cluster"]))
        _apply(plan, cluster)
        return f"done: {plan.summary}"


def _apply(plan: Plan, cluster: Cluster) -> None:
    thing = (plan.target or "").partition("/")[2]
    match plan.tool:
        case "tidb_create_backup":
            cluster.backups += 1
        case "tidb_create_branch":
            cluster.branches.add(thing)
        case "tidb_delete_branch":
            cluster.branches.discard(thing)
        case "tidb_create_sql_user":
            cluster.sql_users.add(thing)
        case "tidb_delete_sql_user":
            cluster.sql_users.discard(thing)
        case "tidb_update_cluster":
            cluster.nodes = int(str(plan.details.get("nodes", cluster.nodes)))
        case _:  # the rest takes the platform a while: until then all looks as before
            pass
