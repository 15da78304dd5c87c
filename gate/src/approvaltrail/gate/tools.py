"""The tools that need a confirmation, and which of them spend their token.

All twelve need a token: the signature costs no network hop. Seven also spend the nonce in the
ledger: those that destroy or cost money, where a second execution deletes something else or buys
another resource. A ledger outage therefore locks exactly these seven.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from approvaltrail.gate.errors import UnknownToolError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool behind the gate."""

    name: str
    action: str
    """What it does, in a word or two: the usual `Plan.action`."""
    ledgered: bool
    """Its token is spent in the ledger and works once."""
    reversible: bool
    """The usual `Plan.reversible`."""
    summary_recorded: bool = True
    """Whether an issuance may carry the plan's summary; off where summaries quote statements."""


_ALL: Final = (
    Tool(name="tidb_delete_cluster", action="delete cluster", ledgered=True, reversible=False),
    Tool(name="tidb_delete_branch", action="delete branch", ledgered=True, reversible=False),
    Tool(name="tidb_delete_sql_user", action="delete SQL user", ledgered=True, reversible=False),
    Tool(name="tidb_create_cluster", action="create cluster", ledgered=True, reversible=True),
    Tool(name="tidb_restore_cluster", action="restore cluster", ledgered=True, reversible=True),
    Tool(name="tidb_restore_backup", action="restore backup", ledgered=True, reversible=True),
    Tool(name="tidb_create_backup", action="create backup", ledgered=True, reversible=True),
    Tool(
        name="tidb_execute",
        action="execute SQL",
        ledgered=False,
        reversible=False,
        summary_recorded=False,
    ),
    Tool(name="tidb_create_branch", action="create branch", ledgered=False, reversible=True),
    Tool(name="tidb_create_sql_user", action="create SQL user", ledgered=False, reversible=True),
    Tool(name="tidb_update_cluster", action="update cluster", ledgered=False, reversible=True),
    Tool(name="tidb_update_sql_user", action="update SQL user", ledgered=False, reversible=True),
)

TOOLS: Final[Mapping[str, Tool]] = MappingProxyType({tool.name: tool for tool in _ALL})
"""The twelve, by name."""


def tool_named(tool: str | Tool, table: Mapping[str, Tool] = TOOLS) -> Tool:
    """Return the tool of that name; a `Tool` value stands for itself.

    Raises:
        UnknownToolError: the table has no such tool.
    """
    if isinstance(tool, Tool):
        return tool
    try:
        return table[tool]
    except KeyError:
        raise UnknownToolError(
            "the gate's table has no tool of that name; add it, or give a Tool value"
        ) from None
