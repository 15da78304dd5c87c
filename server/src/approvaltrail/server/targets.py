"""Readiness of the clusters that templates are bound to.

A target that does not answer is no reason not to start: it may be starting itself. One that
answers with an error will not be mended by waiting. The discriminator is whether it answered.
Tools bound to an unavailable target are taken off the list; they come back when it answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from enum import StrEnum
from typing import Final

import structlog

from approvaltrail.server.errors import (
    DatabaseError,
    DatabaseSilentError,
    PlatformError,
    PlatformSilentError,
)

AGAIN_SECONDS: Final = 30.0
_log = structlog.get_logger(__name__)

Probe = Callable[[str], Awaitable[None]]
"""Returns where the target is usable; raises a `DatabaseError` or `PlatformError` where not."""


class Readiness(StrEnum):
    """What is known of a target."""

    READY = "ready"
    SILENT = "silent"
    """It did not answer: it is asked again."""
    HOPELESS = "hopeless"
    """It answered that this will not work: asking again is pointless."""


class Targets:
    """The declared targets and how they are."""

    def __init__(self, cluster_ids: Iterable[str], probe: Probe | None) -> None:
        self._states = dict.fromkeys(sorted(set(cluster_ids)), Readiness.READY)
        self._probe = probe
        self._silenced = asyncio.Event()

    @property
    def states(self) -> dict[str, Readiness]:
        """Every target's readiness."""
        return dict(self._states)

    def available(self, cluster_id: str | None) -> bool:
        """Say whether a tool with this target can be called; None is bound to nothing."""
        return cluster_id is None or self._states.get(cluster_id) is Readiness.READY

    def hopeless(self) -> tuple[str, ...]:
        """Return the targets that answered that they cannot be used."""
        return tuple(name for name, state in self._states.items() if state is Readiness.HOPELESS)

    def silence(self, cluster_id: str) -> bool:
        """Note that a target fell silent during a call; say whether that is news."""
        if self._states.get(cluster_id) is not Readiness.READY:
            return False
        self._set(cluster_id, Readiness.SILENT)
        self._silenced.set()
        return True

    async def look(self) -> bool:
        """Ask every target that is not known to be hopeless; say whether anything changed."""
        if self._probe is None:
            return False
        before = self.states
        for cluster_id, state in before.items():
            if state is not Readiness.HOPELESS:
                self._set(cluster_id, await self._readiness(self._probe, cluster_id))
        return before != self._states

    async def watch(
        self, changed: Callable[[], Awaitable[None]], *, again_seconds: float = AGAIN_SECONDS
    ) -> None:
        """Ask silent targets again, now and then, until cancelled; tell of changes."""
        while True:
            if Readiness.SILENT in self._states.values():
                await asyncio.sleep(again_seconds)
                if await self.look():
                    await changed()
            else:
                self._silenced.clear()
                await self._silenced.wait()

    async def _readiness(self, probe: Probe, cluster_id: str) -> Readiness:
        try:
            await probe(cluster_id)
        except (DatabaseSilentError, PlatformSilentError):
            return Readiness.SILENT
        except (DatabaseError, PlatformError) as error:
            _log.error("target_hopeless", cluster_id=cluster_id, error=str(error))
            return Readiness.HOPELESS
        return Readiness.READY

    def _set(self, cluster_id: str, state: Readiness) -> None:
        if self._states[cluster_id] is not state:
            _log.warning("target_readiness", cluster_id=cluster_id, state=state.value)
        self._states[cluster_id] = state
