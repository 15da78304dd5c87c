"""For tests, demonstrations and smoke runs: a cluster platform in memory, and a running server."""

from __future__ import annotations

from approvaltrail.server.testing.fake_api import fake_api
from approvaltrail.server.testing.memory import MemoryPlatform, MemoryPlatforms
from approvaltrail.server.testing.running import (
    RunningServer,
    running_server,
    server_settings,
    serving,
)
from approvaltrail.server.testing.world import Grant, World

__all__ = [
    "Grant",
    "MemoryPlatform",
    "MemoryPlatforms",
    "RunningServer",
    "World",
    "fake_api",
    "running_server",
    "server_settings",
    "serving",
]
