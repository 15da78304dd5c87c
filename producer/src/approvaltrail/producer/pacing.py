"""How fast a backlog is sent: at full speed while nobody records, with rests while somebody does.

The relay shares the interpreter with those who record. A backlog sent at full speed makes them wait
many times as long; so while somebody records the relay rests after each chunk, and within a chunk
it stands back whenever an event is on its way to the disk.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_RECORDING_SECONDS: Final = 0.5
"""So long after an event was recorded, more are expected."""
_LONGEST_REST_SECONDS: Final = 1.0
_STANDS_BACK_SECONDS: Final = 0.000_25
_STANDS_BACK_TIMES: Final = 4
"""About a commit's length together. The bound keeps a backlog moving under the heaviest load."""


class Pacing:
    """Says how long to rest after each chunk."""

    def __init__(self, events_per_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = events_per_second
        self._clock = clock
        self._recorded: int | None = None
        self._recording_until = 0.0
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
        if self._recorded is not None and recorded > self._recorded:
            self._recording_until = now + _RECORDING_SECONDS
        self._recorded = recorded
        if now >= self._recording_until or not backlog:
            return 0.0
        rest = min(_LONGEST_REST_SECONDS, max(0.0, sent / self._rate - spent))
        self._last = now + rest
        return rest


def give_way(somebody_waits: Callable[[], bool]) -> None:
    """Let those who wait for the disk have the interpreter, for a bounded time.

    Giving up the interpreter's lock alone is not enough: the thread that gives it up mostly takes
    it back before another has woken up.
    """
    time.sleep(0)
    for _ in range(_STANDS_BACK_TIMES):
        if not somebody_waits():
            return
        time.sleep(_STANDS_BACK_SECONDS)
