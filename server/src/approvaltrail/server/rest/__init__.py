"""REST under /v1: the same tools, the same gate."""

from __future__ import annotations

from approvaltrail.server.rest.router import rest_routes

__all__ = ["rest_routes"]
