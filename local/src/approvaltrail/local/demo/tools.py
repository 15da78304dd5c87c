"""The twelve tools as one plain async callable: a surface (MCP, REST) only has to translate."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from approvaltrail.gate import Caller, Confirmed, Gate, Preflight, Refusal
from approvaltrail.gate.errors import PreflightRefusedError
from approvaltrail.gate.plan import Plan
from approvaltrail.local.demo.platform import Platform

Answer = Preflight | Confirmed[str] | Refusal
CONFIRM: Final = "confirm"
TOKEN: Final = "confirm_token"


class ToolServer:
    """Calls without `confirm` answer with a preflight, calls with it execute."""

    def __init__(self, gate: Gate, platform: Platform) -> None:
        self._gate = gate
        self._platform = platform

    async def call(self, tool: str, arguments: Mapping[str, Any], caller: Caller) -> Answer:
        """Run one tool call for a caller.

        `confirm: true` with `confirm_token` asks for execution; all other arguments say what.

        Raises:
            PlatformError: the work itself failed after it was accepted.
        """
        what = {key: value for key, value in arguments.items() if key not in {CONFIRM, TOKEN}}

        async def plan() -> Plan:
            await asyncio.sleep(0)
            return self._platform.plan(caller.tenant or "", tool, what)

        try:
            if not arguments.get(CONFIRM):
                return await self._gate.preflight(tool, plan, caller=caller)
            return await self._gate.confirm(
                tool, plan, arguments.get(TOKEN), self._platform.execute, caller=caller
            )
        except PreflightRefusedError as error:
            return error.refusal
