"""Callers who bring a platform key of their own: identity and authority in one.

The server holds no map from tokens to databases and no database password: the platform decides
what the key may, and a key without rights on a cluster is refused there, before any code of ours.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final

from approvaltrail.schemas import PrincipalKind
from approvaltrail.server.auth.identity import Identity
from approvaltrail.server.platform.protocol import Platforms
from approvaltrail.server.platform.values import ApiKey
from approvaltrail.server.reach import Breadth, Reach, reach_of

KEPT: Final = 1_024
"""Keys whose reach is remembered; beyond it the one that was used longest ago is asked again."""
GOOD_SECONDS: Final = 300.0
BAD_SECONDS: Final = 15.0
"""A refused key is not put to the platform again for so long."""
WAITING: Final = 64
"""Questions to the platform at a time; more callers wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    reach: Reach
    until: float


class OwnKeys:
    """Identifies callers by asking the platform what their key reaches."""

    def __init__(self, platforms: Platforms, *, now: Callable[[], float] = monotonic) -> None:
        self._platforms = platforms
        self._now = now
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._slots = asyncio.Semaphore(WAITING)

    async def identify(self, credential: str) -> Identity | None:
        """Return the key's identity; None where the platform refuses it or does not answer."""
        key = ApiKey.parse(credential)
        if key is None:
            return None
        reach = await self.reach(key)
        if reach.breadth in {Breadth.REFUSED, Breadth.UNKNOWN}:
            return None
        return Identity(
            tenant=reach.organization or f"key:{key.public}",
            principal=f"key:{key.public}",
            principal_kind=PrincipalKind.SERVICE,
            api_key=key,
        )

    async def reach(self, key: ApiKey) -> Reach:
        """Return what the key reaches, remembered for a while."""
        name = hashlib.sha256(key.text.encode()).digest()
        known = self._known.get(name)
        if known is not None and known.until > self._now():
            self._known.move_to_end(name)
            return known.reach
        async with self._slots:
            reach = await reach_of(self._platforms.under(key))
        self._remember(name, reach)
        return reach

    def _remember(self, name: bytes, reach: Reach) -> None:
        if reach.breadth is Breadth.UNKNOWN:
            return
        kept = BAD_SECONDS if reach.breadth is Breadth.REFUSED else GOOD_SECONDS
        self._known[name] = _Known(reach=reach, until=self._now() + kept)
        self._known.move_to_end(name)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
