"""The tools: what callers can ask for."""

from __future__ import annotations

from approvaltrail.server.tools.access import Access
from approvaltrail.server.tools.definitions import FreeTool, GatedTool, ServerTool
from approvaltrail.server.tools.toolbox import Toolbox

__all__ = ["Access", "FreeTool", "GatedTool", "ServerTool", "Toolbox"]
