"""What MCP and REST share: who calls, with what authority, through one dispatcher."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from approvaltrail.server.auth.identity import Identifier
from approvaltrail.server.dispatch import Answer, Dispatcher
from approvaltrail.server.metrics import UNKNOWN_TOOL, CallMetrics
from approvaltrail.server.platform.protocol import Platforms
from approvaltrail.server.platform.values import ApiKey
from approvaltrail.server.reach import Reach, reach_of
from approvaltrail.server.request import Callers, Presence
from approvaltrail.server.settings import ServerSettings
from approvaltrail.server.tools.access import Access, Pinned, SqlRunner, access_for
from approvaltrail.server.tools.toolbox import Toolbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """Serves calls for a transport."""

    settings: ServerSettings
    callers: Callers
    toolbox: Toolbox
    dispatcher: Dispatcher
    platforms: Platforms
    pinned: Pinned | None
    metrics: CallMetrics
    identifier: Identifier | None
    """Tells who a presented credential stands for; None where none is asked for."""
    runner: SqlRunner | None = None
    """Runs SQL instead of a login that is made for each statement."""

    async def call(self, name: str, arguments: Mapping[str, Any], presence: Presence) -> Answer:
        """Call a tool for a caller."""
        begun = time.perf_counter()
        access = self.access(presence.api_key)
        answer = await self.dispatcher.call(name, arguments, presence, access)
        known = name if self.toolbox.named(name) is not None else UNKNOWN_TOOL
        self.metrics.answered(known, answer, begun)
        return answer

    def access(self, own: ApiKey | None) -> Access:
        """Return the access of a caller: under its own key, where it brought one."""
        return access_for(
            self.settings.platform_key,
            own,
            self.platforms,
            boundary=self.settings.boundary,
            pinned=self.pinned,
            tls=self.settings.tidb_tls,
            runner=self.runner,
        )

    async def reach(self, own: ApiKey | None) -> Reach | None:
        """Return what stands behind a caller reaches; None where no key does."""
        authority = self.access(own).authority
        return None if authority is None else await reach_of(authority)
