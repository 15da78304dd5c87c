"""The cluster platform: what the server's tools act on."""

from __future__ import annotations

from approvaltrail.server.platform.http import HttpPlatforms, PlatformAddresses
from approvaltrail.server.platform.protocol import Platform, Platforms
from approvaltrail.server.platform.values import (
    ApiKey,
    Backup,
    Branch,
    Cluster,
    ClusterPage,
    Projects,
    SqlUser,
)

__all__ = [
    "ApiKey",
    "Backup",
    "Branch",
    "Cluster",
    "ClusterPage",
    "HttpPlatforms",
    "Platform",
    "PlatformAddresses",
    "Platforms",
    "Projects",
    "SqlUser",
]
