"""A function behind the gate."""

from __future__ import annotations

import inspect

import pytest
from tests.gate.common import DELETE, EXECUTE

from approvaltrail.gate import ConfirmArguments, Plan, PlanError, Preflight, Refusal
from approvaltrail.gate.testing import GateUnderTest, plan_of


async def plan_delete(cluster: str, *, force: bool = False) -> Plan:
    """Make the plan of a delete."""
    if cluster == "lost":
        raise TimeoutError
    return plan_of(DELETE, target=cluster.strip(), force=force)


async def test_a_decorated_function_runs_in_two_steps(gate: GateUnderTest) -> None:
    """G1: without confirm it only describes; with the token it runs, once."""

    @gate.gate.confirmed(plan=plan_delete, single_use=True)
    async def tidb_delete_cluster(plan: Plan) -> str:
        return f"deleted {plan.target}"

    shown = await tidb_delete_cluster("prod-7")
    assert isinstance(shown, Preflight)
    arguments = {"confirm": True, "confirm_token": shown.token}
    for wrong in (None, "prod-8"):
        refused = await tidb_delete_cluster("prod-7", confirm_target=wrong, **arguments)
        assert refused.code == "target_unconfirmed"
    ran = await tidb_delete_cluster(" prod-7 ", confirm_target="prod-7", **arguments)
    assert ran == "deleted prod-7"
    again = await tidb_delete_cluster("prod-7", confirm_target="prod-7", **arguments)
    assert (again.code, again.token_spent) == ("already_used", True)
    assert gate.events.types == [
        "issued", "refused", "refused", "accepted", "completed", "replayed",
    ]  # fmt: skip


async def test_the_embedder_names_the_confirms_arguments(gate: GateUnderTest) -> None:
    """G1, G9: schema, text and call use the surface's own names; a clash is refused at once."""
    names = ConfirmArguments(confirm="go", target="goTarget", token="goToken")

    @gate.gate.confirmed(plan=plan_delete, arguments=names)
    async def tidb_delete_cluster(plan: Plan) -> str | None:
        return plan.target

    shown = await tidb_delete_cluster("prod-7")
    assert 'go: true, goTarget: "prod-7" and this goToken.\ngoToken: at1.' in shown.text
    assert list(inspect.signature(tidb_delete_cluster).parameters)[2:] == [
        "go", "goTarget", "goToken",
    ]  # fmt: skip
    ran = await tidb_delete_cluster("prod-7", go=True, goTarget="prod-7", goToken=shown.token)
    assert ran == "prod-7"
    with pytest.raises(PlanError, match="force"):
        gate.gate.confirmed(
            plan=plan_delete, tool=DELETE, arguments=ConfirmArguments(confirm="force")
        )(tidb_delete_cluster)


@pytest.mark.parametrize("token", [0, 7, True, b"at1.a.b", ["at1"], {"a": 1}, 1.5, "\ud800"])
async def test_a_token_that_is_no_text_is_answered(gate: GateUnderTest, token: object) -> None:
    """S-02: whatever stands in the token's place is malformed, and leaves one event."""

    @gate.gate.confirmed(plan=plan_delete)
    async def tidb_delete_cluster(plan: Plan) -> None:
        pytest.fail("was run")

    refused = await tidb_delete_cluster("a", confirm=True, confirm_target="a", confirm_token=token)
    assert refused.code == "malformed_token"
    assert gate.events.types == ["refused"]


async def test_confirming_without_a_token_is_refused(gate: GateUnderTest) -> None:
    """G1: a first call that claims to be confirmed runs nothing."""

    @gate.gate.confirmed(plan=plan_delete)
    async def tidb_delete_cluster(plan: Plan) -> None:
        pytest.fail("was run")

    refused = await tidb_delete_cluster("prod-7", confirm=True, confirm_target="prod-7")
    assert (refused.code, refused.next_move) == ("missing_token", "run_preflight")
    assert gate.events.types == ["refused"]


@pytest.mark.parametrize("confirm", ["no", "FALSE", "0", -1, 2, [], {}, object()])
async def test_a_strange_confirm_runs_nothing_whatever_its_token(
    gate: GateUnderTest, confirm: object
) -> None:
    """G1: what says neither yes nor no is a recorded attempt without a token; the token stays."""

    @gate.gate.confirmed(plan=plan_delete)
    async def tidb_delete_cluster(plan: Plan) -> str | None:
        return plan.target

    shown = await tidb_delete_cluster("prod-7")
    given = {"confirm_target": "prod-7", "confirm_token": shown.token}
    refused = await tidb_delete_cluster("prod-7", confirm=confirm, **given)
    assert refused.code == "missing_token"
    assert gate.events.types == ["issued", "refused"]
    assert await tidb_delete_cluster("prod-7", confirm=True, **given) == "prod-7"


async def test_a_failed_lookup_is_answered_by_a_refusal(gate: GateUnderTest) -> None:
    """G4: no token, no placeholder, no event of an issuance."""

    @gate.gate.confirmed(plan=plan_delete)
    async def tidb_delete_cluster(plan: Plan) -> None:
        pytest.fail("was run")

    refused = await tidb_delete_cluster("lost")
    assert isinstance(refused, Refusal)
    assert refused.code == "plan_unavailable"
    assert isinstance(refused.cause, TimeoutError)
    assert gate.events.types == []
    token = await gate.preflight(DELETE, cluster="lost")
    refused = await tidb_delete_cluster("lost", confirm=True, confirm_token=token)
    assert (refused.code, type(refused.cause)) == ("plan_unavailable", TimeoutError)
    assert "cause" not in refused.structured()


def test_frameworks_see_the_plans_parameters(gate: GateUnderTest) -> None:
    """A tool's schema shows what the plan needs, and the three arguments of a confirm."""

    def present(answer: object) -> dict[str, str]:
        return {"kind": type(answer).__name__}

    @gate.gate.confirmed(plan=plan_delete, present=present)
    async def tidb_delete_cluster(plan: Plan) -> None:
        """Delete a cluster."""

    signature = inspect.signature(tidb_delete_cluster)
    assert list(signature.parameters) == [
        "cluster", "force", "confirm", "confirm_target", "confirm_token",
    ]  # fmt: skip
    assert signature.return_annotation == dict[str, str]
    assert tidb_delete_cluster.__annotations__["confirm"] is bool
    assert tidb_delete_cluster.__annotations__["cluster"] is str
    assert (tidb_delete_cluster.__name__, tidb_delete_cluster.__doc__) == (
        DELETE,
        "Delete a cluster.",
    )
    assert inspect.iscoroutinefunction(tidb_delete_cluster)


async def test_an_answer_is_presented_as_the_transport_wants(gate: GateUnderTest) -> None:
    """`present` sees preflight, refusal and result alike."""

    @gate.gate.confirmed(plan=plan_delete, present=lambda answer: type(answer).__name__)
    async def tidb_delete_cluster(plan: Plan) -> int:
        return 7

    assert await tidb_delete_cluster("a") == "Preflight"
    assert await tidb_delete_cluster("a", confirm=True) == "Refusal"


def test_a_plain_function_is_gated_in_its_thread(gate: GateUnderTest) -> None:
    """Servers with threads decorate plain functions, whose plan must be plain too."""

    @gate.gate.confirmed(plan=lambda name: plan_of_own(name), tool="rename", single_use=True)
    def rename(plan: Plan) -> str | None:
        return plan.target

    shown = rename("a")
    assert shown.single_use
    assert rename("a", confirm=True, confirm_target="a", confirm_token=shown.token) == "a"
    with pytest.raises(PlanError):
        gate.gate.confirmed(plan=plan_delete, tool=DELETE)(lambda plan: plan)


def plan_of_own(name: str) -> Plan:
    """Make a plan of a tool that the table does not have."""
    return Plan(tool="rename", target=name, action="rename", summary="rename", reversible=True)


def test_the_table_decides_on_single_use(gate: GateUnderTest) -> None:
    """G6: a decorator cannot say otherwise than the table of tools."""
    with pytest.raises(PlanError, match=EXECUTE):
        gate.gate.confirmed(plan=plan_delete, tool=EXECUTE, single_use=True)(print)
