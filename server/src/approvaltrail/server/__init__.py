"""A real MCP and REST server behind the gate."""

from __future__ import annotations

from approvaltrail.server.application import Application
from approvaltrail.server.assembly import build
from approvaltrail.server.errors import ServerError, StartRefusedError
from approvaltrail.server.settings import ServerSettings
from approvaltrail.server.startup import check_server

__all__ = [
    "Application",
    "ServerError",
    "ServerSettings",
    "StartRefusedError",
    "build",
    "check_server",
]
