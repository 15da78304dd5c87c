"""Who calls in the demonstration, and what they usually ask for."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from approvaltrail.local.demo.world import BRANCHES, USERS, DemoWorld
from approvaltrail.schemas.events import PrincipalKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A caller: who, from which address, with which client."""

    tenant: str
    principal: str
    kind: PrincipalKind
    address: str
    client: str
    """Name and version, as the client says them."""


def _person(
    tenant: str, name: str, address: str, client: str, kind: PrincipalKind = PrincipalKind.USER
) -> Person:
    return Person(
        tenant=tenant,
        principal=f"{name}@{tenant}.example",
        kind=kind,
        address=address,
        client=client,
    )


ANA: Final = _person("acme", "ana", "10.0.4.7", "claude-desktop 1.9")
BO: Final = _person("acme", "bo", "10.0.4.21", "cursor 0.50")
DEPLOYER: Final = _person("acme", "deployer", "10.0.9.3", "ci-runner 4", PrincipalKind.SERVICE)
KIM: Final = _person("globex", "kim", "192.0.2.44", "vscode 1.104")
AGENT: Final = _person("globex", "ops-agent", "192.0.2.90", "langgraph 0.6", PrincipalKind.AGENT)
LEE: Final = _person("initech", "lee", "198.51.100.12", "claude-desktop 1.9")
PEOPLE: Final = (ANA, BO, DEPLOYER, KIM, AGENT, LEE)

_CLUSTERS: Final = ("prod-1", "prod-7", "staging-2", "staging-5", "dev-3", "dev-8")
_WEIGHTS: Final = (30, 14, 10, 9, 8, 7, 6, 5, 3, 3, 3, 2)
REGION: Final = "regions/aws-eu-central-1"


@dataclass(frozen=True, slots=True)
class Wish:
    """A tool and its arguments."""

    tool: str
    arguments: Mapping[str, Any]

    def with_arguments(self, **changed: object) -> Wish:
        """Return the same wish with other arguments."""
        return replace(self, arguments={**self.arguments, **changed})


def usual_wish(chance: random.Random, person: Person, world: DemoWorld) -> Wish:
    """Pick what somebody may ordinarily want; cheap and harmless things more often."""
    name = chance.choice(_CLUSTERS)
    cluster = {"clusterId": world.cluster(person.tenant, name)}
    user = {**cluster, "userName": chance.choice(USERS)}
    branch = {**cluster, "branchId": chance.choice(BRANCHES)}
    new_name = f"{name}-{chance.randint(100, 999)}"
    close_day = f"CALL close_day({chance.randint(1, 28)})"
    wishes: list[tuple[str, dict[str, Any]]] = [
        ("tidb_execute", {**cluster, "database": "shop", "sql": close_day}),
        ("tidb_create_backup", {**cluster, "displayName": f"nightly-{chance.randint(100, 999)}"}),
        ("tidb_update_cluster", {**cluster, "displayName": new_name}),
        ("tidb_create_branch", {**cluster, "displayName": f"try-{chance.randint(100, 999)}"}),
        ("tidb_create_sql_user", {**user, "userName": "newcomer", "role": "role_readonly"}),
        ("tidb_update_sql_user", {**user, "role": "role_readonly"}),
        ("tidb_delete_sql_user", user),
        ("tidb_delete_branch", branch),
        ("tidb_create_cluster", {"displayName": new_name, "region": REGION}),
        ("tidb_restore_backup", {"backupId": world.backup(person.tenant, name)}),
        ("tidb_restore_cluster", {**cluster, "pointInTime": "2026-03-08T06:00:00Z"}),
        ("tidb_delete_cluster", cluster),
    ]
    tool, arguments = chance.choices(wishes, weights=_WEIGHTS)[0]
    return Wish(tool, arguments)


def elsewhere(person: Person, *, address: str, client: str) -> Person:
    """Return the same credential in another place: what a stolen session looks like."""
    return replace(person, address=address, client=client)
