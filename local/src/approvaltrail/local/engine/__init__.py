"""ClickHouse's engine on one machine: chDB in its own process behind ClickHouse's HTTP interface.

Ordinary ClickHouse clients connect to it, several at once; on a real server nothing changes but
the address. It listens on the loopback address alone, knows one user who may write and one who may
only read, and dies with the process that started it.
"""

from __future__ import annotations

from approvaltrail.local.engine.errors import (
    EngineError,
    EngineFolderInUseError,
    EnginePortTakenError,
    EngineStartError,
    QueryError,
)
from approvaltrail.local.engine.folder import EngineAddress, read_address
from approvaltrail.local.engine.launch import EngineProcess

__all__ = [
    "EngineAddress",
    "EngineError",
    "EngineFolderInUseError",
    "EnginePortTakenError",
    "EngineProcess",
    "EngineStartError",
    "QueryError",
    "read_address",
]
