"""Who calls in the demonstration, and what they usually ask for."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from approvaltrail.gate import Caller
from approvaltrail.schemas.events import AddressSource, PrincipalKind


def _person(
    tenant: str,
    name: str,
    address: str,
    client: str,
    kind: PrincipalKind = PrincipalKind.USER,
) -> Caller:
    return Caller(
        tenant=tenant,
        principal=f"{name}@{tenant}.example",
        principal_kind=kind,
        credential_id=f"cred-{tenant}-{name}",
        session_id=f"session-{tenant}-{name}-1",
        peer_address="10.0.0.2",
        client_address=address,
        address_source=AddressSource.TRUSTED_PROXY,
        client_name=client,
    )


ANA: Final = _person("acme", "ana", "10.0.4.7", "claude-desktop/1.9")
BO: Final = _person("acme", "bo", "10.0.4.21", "cursor/0.50")
DEPLOYER: Final = _person("acme", "deployer", "10.0.9.3", "ci-runner/4", PrincipalKind.SERVICE)
KIM: Final = _person("globex", "kim", "192.0.2.44", "vscode/1.104")
AGENT: Final = _person("globex", "ops-agent", "192.0.2.90", "langgraph/0.6", PrincipalKind.AGENT)
LEE: Final = _person("initech", "lee", "198.51.100.12", "claude-desktop/1.9")
PEOPLE: Final = (ANA, BO, DEPLOYER, KIM, AGENT, LEE)

_CLUSTERS: Final = ("prod-1", "prod-7", "staging-2", "staging-5", "dev-3", "dev-8")
_USERS: Final = ("reporting", "etl", "grafana", "migration")
_BRANCHES: Final = ("feature-billing", "hotfix-412", "load-test")
_WEIGHTS: Final = (30, 14, 10, 9, 8, 7, 6, 5, 3, 3, 3, 2)


@dataclass(frozen=True, slots=True)
class Wish:
    """A tool and its arguments."""

    tool: str
    arguments: Mapping[str, Any]

    def confirmed_with(self, token: str | None) -> dict[str, Any]:
        """Return the arguments of the confirming call."""
        return {**self.arguments, "confirm": True, "confirm_token": token}


def usual_wish(chance: random.Random) -> Wish:
    """Pick what somebody may ordinarily want; cheap and harmless things more often."""
    cluster = chance.choice(_CLUSTERS)
    wishes: list[tuple[str, dict[str, Any]]] = [
        ("tidb_execute", {"sql": "CALL close_day()", "day": chance.randint(1, 28)}),
        ("tidb_create_backup", {"label": f"nightly-{chance.randint(100, 999)}"}),
        ("tidb_update_cluster", {"nodes": chance.randint(3, 9)}),
        ("tidb_create_branch", {"branch": chance.choice(_BRANCHES)}),
        ("tidb_create_sql_user", {"sql_user": chance.choice(_USERS)}),
        ("tidb_update_sql_user", {"sql_user": chance.choice(_USERS), "role": "read_only"}),
        ("tidb_delete_sql_user", {"sql_user": chance.choice(_USERS)}),
        ("tidb_delete_branch", {"branch": chance.choice(_BRANCHES)}),
        ("tidb_create_cluster", {"region": "eu-central-1", "nodes": 3}),
        ("tidb_restore_backup", {"backup": f"nightly-{chance.randint(100, 999)}"}),
        ("tidb_restore_cluster", {"to": "2026-03-08T06:00:00Z"}),
        ("tidb_delete_cluster", {}),
    ]
    tool, arguments = chance.choices(wishes, weights=_WEIGHTS)[0]
    return Wish(tool, {"cluster": cluster, **arguments})


def elsewhere(caller: Caller, *, address: str, client: str, session: str) -> Caller:
    """Return the same credential in another place: what a stolen session looks like."""
    return replace(caller, client_address=address, client_name=client, session_id=session)
