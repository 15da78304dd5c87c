"""All tools of a server, and which of them are on offer now."""

from __future__ import annotations

from collections.abc import Iterable

from approvaltrail.server.targets import Targets
from approvaltrail.server.templates import Template
from approvaltrail.server.tools.definitions import ServerTool
from approvaltrail.server.tools.exploring import EXPLORATION
from approvaltrail.server.tools.from_templates import template_tools
from approvaltrail.server.tools.gated import gated_tools


class Toolbox:
    """The tools by name. Those bound to an unavailable target are not offered."""

    def __init__(self, tools: Iterable[ServerTool], targets: Targets) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self.targets = targets

    def named(self, name: str) -> ServerTool | None:
        """Return a tool, on offer or not."""
        return self._tools.get(name)

    def offered(self) -> tuple[ServerTool, ...]:
        """Return the tools that can be called now."""
        return tuple(tool for tool in self._tools.values() if self.targets.available(tool.target))


def toolbox_of(templates: Iterable[Template], targets: Targets, *, writable: bool) -> Toolbox:
    """Return the toolbox of a server; a read-only one has no gated tool."""
    gated = gated_tools() if writable else ()
    return Toolbox((*EXPLORATION, *template_tools(templates), *gated), targets)


def reserved_names() -> frozenset[str]:
    """Return the names that no template may take."""
    tools: tuple[ServerTool, ...] = (*EXPLORATION, *gated_tools())
    return frozenset(tool.name for tool in tools)
