"""What the gate's tests share: a fixed secret, plans, gates, and a search for tokens in events."""

from __future__ import annotations

from typing import Any

from pydantic import SecretStr

from approvaltrail.gate import Caller, Deployment, Gate, GateSettings, Plan, Tool
from approvaltrail.gate.testing import EventLog
from approvaltrail.schemas import ApprovalEvent
from approvaltrail.schemas.token_shape import looks_like_token, parts_of

SECRET = "a secret for tests alone, 32 bytes or more"
OTHER_SECRET = "another secret for tests, of 32 bytes or more"
DELETE = "tidb_delete_cluster"
EXECUTE = "tidb_execute"


def settings(**values: Any) -> GateSettings:
    """Make settings from defaults and these values, whatever the environment says."""
    for name in ("confirm_secret", "confirm_secret_previous", "control_dsn"):
        if isinstance(values.get(name), str):
            values[name] = SecretStr(values[name])
    return GateSettings.model_construct(**values)


def plan(tool: str = DELETE, target: str | None = "prod-7", **changes: Any) -> Plan:
    """Make a plan; `changes` replace its other fields."""
    values: dict[str, Any] = {
        "action": "delete cluster",
        "summary": "delete cluster prod-7 with its backups",
        "details": {"nodes": 3, "backups": 2},
        "reversible": False,
    }
    return Plan(tool=tool, target=target, **(values | changes))


def shared_gate(events: EventLog, ledger: Any, clock: Any, **values: Any) -> Gate:
    """Make a gate that shares the tests' secret with others."""
    caller = values.pop("caller", Caller(tenant="acme", principal="ana@example.org"))
    return Gate(
        settings(**({"confirm_secret": SECRET, "deployment": Deployment.STDIO} | values)),
        recorder=events,
        ledger=ledger,
        clock=clock,
        caller=lambda: caller,
    )


def one_time(name: str) -> Tool:
    """Make a ledgered tool of any name."""
    return Tool(name=name, action="act", ledgered=True, reversible=False)


def token_free(events: list[ApprovalEvent], *tokens: str) -> bool:
    """Say whether no event holds a token, or a part of one of these."""
    text = "\n".join(event.model_dump_json() for event in events)
    return not looks_like_token(text) and not any(
        part in text for token in tokens for part in parts_of(token)
    )


class DyingLog(EventLog):
    """Takes events until one of a type comes."""

    fails_at = "accepted"

    def record_sync(self, event: Any) -> Any:
        """Become unavailable at the chosen type."""
        if event.event_type == self.fails_at:
            self.unavailable = True
        return super().record_sync(event)
