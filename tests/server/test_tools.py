"""What the tools ask for, and which are on offer."""

from __future__ import annotations

import pytest
from mcp import Client
from tests.server.helpers import Local, read_templates, template

from approvaltrail.gate import TOOLS
from approvaltrail.server.errors import TemplateError
from approvaltrail.server.targets import Targets
from approvaltrail.server.templates import templates_of
from approvaltrail.server.tools.gated import gated_tools
from approvaltrail.server.tools.toolbox import toolbox_of

SECOND_STEP = {"confirm", "confirmTarget", "confirmToken"}


async def listed(client: Client) -> dict:
    """Return the tools on offer, by name."""
    return {tool.name: tool for tool in (await client.list_tools()).tools}


async def test_the_twelve_stand_behind_the_gate(local: Local) -> None:
    """G6: twelve tools have a second step, and seven of them say that a token works once."""
    tools = await listed(local.client)
    gated = {name for name, tool in tools.items() if set(schema(tool)) >= SECOND_STEP}
    assert gated == set(TOOLS)
    once = {name for name in gated if "works once" in tools[name].description}
    assert once == {name for name, row in TOOLS.items() if row.ledgered}
    assert len(once) == 7
    for name in gated:
        assert tools[name].annotations.destructive_hint is not TOOLS[name].reversible


def schema(tool: object) -> dict:
    """Return the properties of a tool's input."""
    return tool.input_schema["properties"]


def test_the_table_of_tools_is_the_gates() -> None:
    """Every row of the gate's table has its tool, by the same name."""
    assert {tool.name: tool.tool for tool in gated_tools()} == dict(TOOLS)


async def test_a_template_asks_for_no_cluster() -> None:
    """B1: a template's tool shows its parameters alone; where the caller chooses, it is asked."""
    async with Local.open(templates=read_templates(template())) as local:
        tools = await listed(local.client)
        assert set(schema(tools["orders_of"])) == {"customer"}
        assert tools["orders_of"].input_schema["additionalProperties"] is False
        assert "clusterId" in schema(tools["tidb_describe_cluster"])
        answer = await local.call("orders_of", customer="7", clusterId="system")
        assert answer["code"] == "invalid_arguments"
        assert "system" not in answer["text"]


def test_a_read_only_server_offers_nothing_that_changes() -> None:
    """G8: without a confirm flow there is no tool that would need one."""
    tools = toolbox_of((), Targets((), None), writable=False).offered()
    assert not {tool.name for tool in tools} & set(TOOLS)
    assert "tidb_list_clusters" in {tool.name for tool in tools}


async def test_looking_around(local: Local) -> None:
    """Exploration tools need no second step and record nothing."""
    found = await local.call("tidb_list_clusters")
    assert [cluster["displayName"] for cluster in found["result"]["clusters"]] == ["prod-1"]
    assert (await local.call("tidb_describe_cluster", clusterId="PROD-1"))["result"]["state"]
    branches = await local.call("tidb_list_branches", clusterId="prod-1")
    assert branches["result"]["branches"][0]["displayName"] == "staging"
    users = await local.call("tidb_list_sql_users", clusterId="prod-1")
    assert users["result"]["sqlUsers"][0]["role"] == "role_admin"
    backups = await local.call("tidb_list_backups", clusterId="prod-1")
    assert backups["result"]["backups"][0]["backupId"] == "backup-1"
    reach = await local.call("tidb_describe_reach")
    assert reach["result"]["breadth"] == "single"
    assert local.recorder.events.types == []


async def test_the_boundary_is_a_second_line() -> None:
    """B2: a cluster within the key's reach and outside the boundary is not touched."""
    async with Local.open(cluster_allow="42") as local:
        assert (await local.call("tidb_list_clusters"))["result"]["clusters"] == []
        for tool in ("tidb_describe_cluster", "tidb_delete_cluster"):
            answer = await local.call(tool, clusterId="prod-1")
            assert (answer["code"], answer["retry_safe"]) == ("outside_boundary", False)
        assert local.recorder.events.types == []


async def test_two_clusters_of_one_name_are_told_apart_by_id(local: Local) -> None:
    """G4: a name that fits several things is no target."""
    twin = local.world.add_cluster("prod-1")
    local.world.grants[local.key.public] = local.world.grants[local.key.public].__class__(
        private=local.key.private, clusters=None
    )
    answer = await local.call("tidb_delete_cluster", clusterId="prod-1")
    assert answer["code"] == "ambiguous_target"
    shown = await local.call("tidb_delete_cluster", clusterId=twin.cluster_id)
    assert shown["plan"]["details"] == {"clusterId": twin.cluster_id}


WRONG = {
    "no cluster": (template(cluster=None), "cluster"),
    "a cluster that is asked for": (
        template(
            sql="SELECT :customer, :clusterId",
            parameters={"customer": {}, "clusterId": {}},
        ),
        "never asked for",
    ),
    "an undeclared parameter": (template(parameters={}), "does not declare"),
    "an unused parameter": (template(sql="SELECT 1"), "does not use"),
    "a change": (template(sql="DELETE FROM orders WHERE id = :customer"), "reads"),
    "two statements": (template(sql="SELECT :customer; DROP TABLE orders"), "one statement"),
    "a type": (template(parameters={"customer": {"type": "blob"}}), "blob"),
}


@pytest.mark.parametrize("case", sorted(WRONG))
def test_a_template_declares_what_it_needs(case: str) -> None:
    """B2: a template without its cluster, or that asks for one, is refused when it is read."""
    table, said = WRONG[case]
    with pytest.raises(TemplateError, match=said):
        read_templates({name: value for name, value in table.items() if value is not None})


def test_every_wrong_template_is_named() -> None:
    """All problems of a file come at once."""
    first, second = template(name="a"), template(name="b", parameters={})
    del first["cluster"]
    with pytest.raises(TemplateError) as caught:
        templates_of({"template": [first, second, template(name="c"), template(name="c")]})
    said = str(caught.value)
    assert all(part in said for part in ("'a': cluster is missing", "'b' uses", "named 'c'"))


def test_parameters_are_found_outside_texts_and_comments() -> None:
    """A colon within quotes or a comment is no parameter, and a percent sign stays one."""
    (read,) = read_templates(
        template(sql="SELECT ':no', `a:b` FROM t WHERE c LIKE '5%' AND d = :customer -- :nor")
    )
    assert read.statement == (
        "SELECT ':no', `a:b` FROM t WHERE c LIKE '5%%' AND d = %(customer)s -- :nor"
    )
