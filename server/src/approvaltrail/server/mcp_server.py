"""The MCP server, on the official package.

It is the package's `Server`, not its `MCPServer`: the tools are declared once for MCP and REST,
their arguments are checked in one place, and no error text repeats what a caller sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import structlog
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
    ToolAnnotations,
)

from approvaltrail.server.platform.values import ApiKey
from approvaltrail.server.present import mcp_result
from approvaltrail.server.surface import Surface
from approvaltrail.server.tools.definitions import GatedTool, ServerTool

INSTRUCTIONS: Final = (
    "Tools that change something take two steps. The first call returns a preflight and changes "
    "nothing; let the user read it. The second call repeats the arguments with confirm, "
    "confirmTarget and confirmToken. A refusal's next_move says what to do."
)
NOTICE_SECONDS: Final = 5.0
_GREETINGS: Final = frozenset({"initialize", "server/discover"})
_log = structlog.get_logger(__name__)


class McpSurface:
    """The MCP side of a server."""

    def __init__(self, surface: Surface, *, name: str, version: str) -> None:
        self._surface = surface
        self._bus = InMemorySubscriptionBus()
        self.server: Server[Any] = Server(
            name,
            version=version,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=ListenHandler(self._bus),
            get_tool_input_schema=self._input_schema,
        )
        self.server.middleware.append(self._with_notice)

    async def tools_changed(self) -> None:
        """Tell clients that listen that tools came or went."""
        await self._bus.publish(ToolsListChanged())

    async def _list_tools(
        self,
        _context: ServerRequestContext[Any, Any],
        _params: PaginatedRequestParams | None,
    ) -> ListToolsResult:
        return ListToolsResult(tools=[listed(tool) for tool in self._surface.toolbox.offered()])

    async def _call_tool(
        self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult:
        presence = self._surface.callers.of_mcp(context)
        before = self._surface.toolbox.targets.states
        answer = await self._surface.call(params.name, params.arguments or {}, presence)
        if before != self._surface.toolbox.targets.states:
            await self.tools_changed()
        return mcp_result(answer)

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        tool = self._surface.toolbox.named(name)
        return None if tool is None else tool.input_schema()

    async def _with_notice(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Add to each connection's greeting what the credential behind it reaches."""
        result = await call_next(ctx)
        if ctx.method not in _GREETINGS or not isinstance(result, dict):
            return result
        notice = await self._notice(self._surface.callers.of_mcp(ctx).api_key)
        return result if notice is None else {**result, "instructions": f"{INSTRUCTIONS} {notice}"}

    async def _notice(self, own: ApiKey | None) -> str | None:
        try:
            async with asyncio.timeout(NOTICE_SECONDS):
                reach = await self._surface.reach(own)
        except TimeoutError:
            _log.warning("reach_notice_late", seconds=NOTICE_SECONDS)
            return None
        return None if reach is None else reach.statement()


def listed(tool: ServerTool) -> Tool:
    """Return a tool as MCP lists it."""
    gated = isinstance(tool, GatedTool)
    destructive = isinstance(tool, GatedTool) and not tool.tool.reversible
    return Tool(
        name=tool.name,
        description=tool.shown_description(),
        input_schema=tool.input_schema(),
        annotations=ToolAnnotations(
            read_only_hint=not gated, destructive_hint=destructive, open_world_hint=True
        ),
    )
