"""How fast a backlog is sent: at full speed while nobody records, with rests while somebody does.

The relay shares the interpreter with those who record. A backlog sent at full speed lifts their
latency fivefold; sent with rests, hardly.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_BUSY_EVENTS: Final = 20
"""So many events recorded during one chunk mean that somebody is recording in earnest."""
_LONGEST_REST_SECONDS: Final = 1.0


class Pacing:
    """Says how long to rest after each chunk."""

    def __init__(self, events_per_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = events_per_second
        self._clock = clock
        self._recorded = 0
        self._last = clock()

    def rest(self, sent: int, recorded: int, *, backlog: int) -> float:
        """Return the seconds to rest.

        Args:
            sent: events in the chunk just sent.
            recorded: the highest number recorded so far, over all journals.
            backlog: events still to be sent.
        """
        now = self._clock()
        spent, self._last = now - self._last, now
        news, self._recorded = recorded - self._recorded, recorded
        if news < _BUSY_EVENTS or not backlog:
            return 0.0
        rest = min(_LONGEST_REST_SECONDS, max(0.0, sent / self._rate - spent))
        self._last = now + rest
        return rest
