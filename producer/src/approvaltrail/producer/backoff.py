"""How long to wait before the next attempt: doubling, bounded, and not all at the same time."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_SECONDS: Final = 0.2


class Backoff:
    """Waits between attempts against something that fails."""

    def __init__(self, longest_seconds: float, jitter: Callable[[], float] = random.random) -> None:
        """Take the bound; `jitter` gives numbers from 0 to 1."""
        self._longest = longest_seconds
        self._jitter = jitter
        self._next = _FIRST_SECONDS

    def seconds(self) -> float:
        """Return the next wait: between a half and the whole of a doubling time."""
        wait, self._next = self._next, min(self._next * 2, self._longest)
        return min(wait, self._longest) * (0.5 + self._jitter() / 2)

    def reset(self) -> None:
        """Begin anew after a success."""
        self._next = _FIRST_SECONDS
