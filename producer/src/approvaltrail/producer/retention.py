"""How long delivered events stay in a journal, to be sent again if a broker or store lost them.

Only events that are acknowledged and sealed may go. They go when their time is over, or before it,
the oldest first, when the journal nears its limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from approvaltrail.producer.database import JournalDatabase, Statement

EVENTS_AT_A_TIME: Final = 250
"""A larger deletion would make those who record at the moment wait for it."""


class Retention:
    """Chooses what the writer deletes next."""

    def __init__(self, database: JournalDatabase, hours: float) -> None:
        self._database = database
        self._microseconds = round(hours * 3_600_000_000)
        self._oldest = database.first_sequence()

    @property
    def oldest_sequence(self) -> int:
        """The first number that can still be sent again; 0 while there is none."""
        return self._oldest

    def began(self, sequence: int) -> None:
        """Take note of the first event in an empty table."""
        if not self._oldest:
            self._oldest = sequence

    def due(self, *, delivered: int, now: int, pressed: bool) -> int:
        """Return the last number to delete now, or 0.

        Args:
            delivered: every number up to this one is acknowledged and sealed.
            now: µs since the epoch.
            pressed: the journal nears its limit, so that age does not matter.
        """
        if not self._oldest or self._oldest > delivered:
            return 0
        last = min(self._oldest + EVENTS_AT_A_TIME - 1, delivered)
        if pressed:
            return last
        return self._database.last_before(now - self._microseconds, self._oldest - 1, last)

    def deleted(self) -> None:
        """Go on behind a committed deletion."""
        self._oldest = self._database.first_sequence()


def deletion(last: int, last_sequence: int, last_recorded_at: int, seal: int) -> list[Statement]:
    """Return the statements of one deletion. The count survives it: the state row keeps its floor.

    Args:
        last: delete events up to this number.
        last_sequence: the journal's highest number so far.
        last_recorded_at: that event's time, µs.
        seal: delete seals up to this number where their events are deleted.
    """
    return [
        ("DELETE FROM events WHERE sequence <= ?", (last,)),
        ("DELETE FROM seals WHERE number <= ? AND last_sequence <= ?", (seal, last)),
        (
            "UPDATE state SET last_sequence = ?, last_recorded_at = ?",
            (last_sequence, last_recorded_at),
        ),
    ]
