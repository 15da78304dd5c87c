"""The two steps over real transports: streamable HTTP in both eras, and in process."""

from __future__ import annotations

import asyncio

import pytest
from tests.server.helpers import DELETE, EXECUTE, Local, called, confirmation

from approvaltrail.gate import TOOLS
from approvaltrail.server.testing import RunningServer

ARGUMENTS = {
    "tidb_delete_cluster": {"clusterId": "prod-1"},
    "tidb_delete_branch": {"clusterId": "prod-1", "branchId": "staging"},
    "tidb_delete_sql_user": {"clusterId": "prod-1", "userName": "root"},
    "tidb_create_cluster": {"displayName": "fresh-1", "region": "regions/aws-us-east-1"},
    "tidb_restore_cluster": {"clusterId": "prod-1", "pointInTime": "2026-01-01T10:00:00+02:00"},
    "tidb_restore_backup": {"backupId": "backup-1"},
    "tidb_create_backup": {"clusterId": "prod-1", "displayName": "nightly-1"},
    "tidb_create_branch": {"clusterId": "prod-1", "displayName": "feature-1"},
    "tidb_create_sql_user": {"clusterId": "prod-1", "userName": "ana", "role": "role_readonly"},
    "tidb_update_cluster": {"clusterId": "prod-1", "displayName": "prod-2"},
    "tidb_update_sql_user": {"clusterId": "prod-1", "userName": "root", "role": "role_readonly"},
}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_preflight_confirm_replay(server: RunningServer, mode: str) -> None:
    """G1, G7: over HTTP a preflight changes nothing, its token works once, a replay is refused."""
    backup = {"clusterId": "prod-1", "displayName": "nightly-1"}
    async with server.client_for(server.token("acme"), mode=mode) as client:
        shown = await called(client, "tidb_create_backup", **backup)
        assert server.world.performed == []
        assert "works once" in shown["shown"]
        assert shown["confirmToken"] in shown["shown"]
        done = await called(client, "tidb_create_backup", **backup, **confirmation(shown))
        assert done["result"]["backupId"].startswith("backup-")
        again = await called(client, "tidb_create_backup", **backup, **confirmation(shown))
    assert (again["code"], again["next_move"]) == ("already_used", "check_then_preflight")
    assert again["nothing_executed"]
    assert not again["retry_safe"]
    assert "may already be done" in again["shown"]
    assert server.world.performed == [("create_backup", "nightly-1")]
    assert server.recorder.events.types == ["issued", "accepted", "completed", "replayed"]
    replay, accepted = server.recorder.events[3], server.recorder.events[1]
    assert replay.spent_claim_id == accepted.event_id
    assert len({event.nonce for event in server.recorder.events}) == 1


@pytest.mark.parametrize("tool", sorted(ARGUMENTS))
async def test_every_gated_tool_does_what_was_shown(local: Local, tool: str) -> None:
    """G6: each of the platform's tools goes through both steps, and acts once confirmed."""
    shown = await local.call(tool, **ARGUMENTS[tool])
    assert ("works once" in shown["shown"]) is TOOLS[tool].ledgered is shown["single_use"]
    assert local.world.performed == []
    done = await local.call(tool, **ARGUMENTS[tool], **confirmation(shown))
    assert done["executed"]
    assert [action for action, _ in local.world.performed] == [tool.removeprefix("tidb_")]
    assert local.recorder.events.types == ["issued", "accepted", "completed"]
    assert {event.tool for event in local.recorder.events} == {tool}


async def test_both_spellings_of_a_target_confirm_one_plan(local: Local) -> None:
    """G-03: the preflight names the resolved target, and any spelling of it confirms."""
    shown = await local.call(DELETE, clusterId=" Prod-1 ")
    assert shown["confirmTarget"] == "prod-1"
    assert 'Target: "prod-1"' in shown["shown"]
    (identity,) = local.world.clusters
    done = await local.call(DELETE, clusterId=identity, **confirmation(shown))
    assert done["result"] == {"deleted": "prod-1", "clusterId": identity}
    assert {event.target for event in local.recorder.events} == {"prod-1"}


async def test_a_token_confirmed_many_times_at_once_runs_once(server: RunningServer) -> None:
    """G-15: of many confirms at the same moment over HTTP one is accepted, the others replays."""
    backup = {"clusterId": "prod-1", "displayName": "nightly-1"}
    async with server.client_for(server.token("acme")) as client:
        both = confirmation(await called(client, "tidb_create_backup", **backup))
        answers = await asyncio.gather(
            *(called(client, "tidb_create_backup", **backup, **both) for _ in range(8))
        )
    assert sorted(answer.get("code", "done") for answer in answers) == [
        *(["already_used"] * 7), "done",
    ]  # fmt: skip
    assert server.world.performed == [("create_backup", "nightly-1")]
    assert server.recorder.events.types.count("replayed") == 7


async def test_an_unledgered_token_works_until_it_expires(local: Local) -> None:
    """G6: the five other tools need a token and do not promise that it works once."""
    both = await local.approve("tidb_create_branch", clusterId="prod-1", displayName="one-branch")
    for _ in range(2):
        assert (await local.call("tidb_create_branch", **both))["executed"]
    assert local.recorder.events.types.count("accepted") == 2


async def test_a_statement_stands_in_no_event(local: Local) -> None:
    """G11: what tidb_execute is to run is shown and hashed, and never recorded."""
    arguments = {"clusterId": "prod-1", "database": "shop", "sql": "DROP TABLE invoices_2025"}
    shown = await local.call(EXECUTE, **arguments)
    assert "DROP TABLE invoices_2025" in shown["shown"]
    (issued,) = local.recorder.events
    assert "invoices_2025" not in issued.model_dump_json()
