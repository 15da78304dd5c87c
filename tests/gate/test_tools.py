"""The table of tools."""

from __future__ import annotations

import pytest

from approvaltrail.gate import TOOLS
from approvaltrail.gate.testing import GateUnderTest

LEDGERED = {
    "tidb_delete_cluster",
    "tidb_delete_branch",
    "tidb_delete_sql_user",
    "tidb_create_cluster",
    "tidb_restore_cluster",
    "tidb_restore_backup",
    "tidb_create_backup",
}


def test_twelve_tools_need_a_token_and_seven_spend_it() -> None:
    """G6: the twelve, of which the seven that destroy or cost money are ledgered."""
    assert len(TOOLS) == 12
    assert {tool.name for tool in TOOLS.values() if tool.ledgered} == LEDGERED
    assert "tidb_execute" in TOOLS
    assert [tool.name for tool in TOOLS.values() if not tool.summary_recorded] == ["tidb_execute"]


@pytest.mark.parametrize("tool", TOOLS)
async def test_each_tool_works_once_exactly_if_it_is_ledgered(tool: str) -> None:
    """G6: each tool is refused without a token; its second confirm depends on the table."""
    gate = GateUnderTest()
    token = await gate.preflight(tool, name="prod-7")
    missing = await gate.gate.confirm(tool, gate._issued[token], None, gate.executed.append)
    assert missing.code == "missing_token"
    await gate.confirm(token)
    second = await gate.confirm(token)
    assert (getattr(second, "code", None) == "already_used") is (tool in LEDGERED)
    assert len(gate.executed) == (1 if tool in LEDGERED else 2)
