"""Waits between attempts that grow, are bounded, and end early when the process has to stop."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Doubles from `first_seconds` up to `longest_seconds`, each wait cut by up to a half."""

    first_seconds: float = 0.1
    longest_seconds: float = 5.0
    attempts: int = 0
    _random: random.Random = field(default_factory=random.Random)

    def next_seconds(self, at_most: float = math.inf) -> float:
        """Return how long to wait now, and count the attempt."""
        doubled: float = self.first_seconds * 2 ** min(self.attempts, 30)
        self.attempts += 1
        longest = min(doubled, self.longest_seconds, at_most)
        return self._random.uniform(longest / 2, longest)

    def reset(self) -> None:
        """Begin again after a success."""
        self.attempts = 0


async def wait_unless(event: asyncio.Event, seconds: float) -> bool:
    """Wait so long, or less if the event is set meanwhile; say whether it is set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
