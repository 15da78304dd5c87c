"""The command `approvaltrail`."""

from __future__ import annotations

from approvaltrail.local.cli.entry import main

__all__ = ["main"]
