"""Stamps events: numbers without gaps and times that never decrease, given under one lock.

The caller encodes everything else. The stamped fields stand first in the contract, so that a stamp
is a prefix; `approvaltrail.schemas.encoding.stamp` says the same for one event at a time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from approvaltrail.producer.database import checksum
from approvaltrail.schemas.contract import event_contract
from approvaltrail.schemas.encoding import producer_stamp, varint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from approvaltrail.producer.state import JournalState

Row = tuple[bytes | None, bytes]
"""An event as its caller gives it: the Kafka key (None: the journal's id) and the encoded tail."""


_BEING_STAMPED: Final = 0
_LOOKS: Final = 100


@dataclass(slots=True)
class Stamped:
    """A batch, stamped, that waits for its commit."""

    first_sequence: int
    last_sequence: int
    recorded_at: int
    bodies: list[bytes]
    parameters: list[Any]
    """For the insert, flat: sequence, recorded_at, checksum, key, body, sequence, …"""


class Stamper:
    """Gives each event of a journal its number and time; used by the writer's thread alone.

    Only `settled_until` may be asked from another thread.
    """

    def __init__(self, state: JournalState, clock: Callable[[], int]) -> None:
        """Continue the numbering of `state`; `clock` gives µs since the epoch."""
        self.last_sequence = state.last_sequence
        self.last_recorded_at = state.last_recorded_at
        self._clock = clock
        self._uncommitted_since: int | None = None
        self._header = event_contract().header
        self._producer = producer_stamp(state.producer_id, state.service, state.instance)

    def stamp(self, rows: Sequence[Row]) -> Stamped:
        """Stamp a batch; the numbers are used up only when `confirm` is called.

        Call `release` when its commit has ended, well or not.
        """
        sequence = self.last_sequence
        self._uncommitted_since = _BEING_STAMPED
        recorded_at = max(self._clock(), self.last_recorded_at)
        self._uncommitted_since = recorded_at
        header, rest = self._header, varint(recorded_at) + self._producer
        bodies: list[bytes] = []
        parameters: list[Any] = []
        for key, tail in rows:
            sequence += 1
            body = b"".join((header, varint(sequence), rest, tail))
            bodies.append(body)
            parameters += (sequence, recorded_at, checksum(body, key), key, body)
        return Stamped(self.last_sequence + 1, sequence, recorded_at, bodies, parameters)

    def confirm(self, stamped: Stamped) -> None:
        """Go on behind a batch that is committed."""
        self.last_sequence = stamped.last_sequence
        self.last_recorded_at = stamped.recorded_at

    def release(self) -> None:
        """Say that no batch is on its way to the disk any more."""
        self._uncommitted_since = None

    def settled_until(self, now: int) -> int:
        """Return the instant, at most `now`, before which every stamp is in `last_sequence`.

        Read `last_sequence` after it. A batch that is being committed has a time already and no
        number yet that anybody may be told; a heartbeat must not speak for later than that.
        """
        for _ in range(_LOOKS):
            since = self._uncommitted_since
            if since is None:
                return now
            if since != _BEING_STAMPED:
                return min(now, since)
            time.sleep(0.0001)  # the writer is between two statements
        return min(now, self.last_recorded_at)
