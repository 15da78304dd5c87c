"""How far the relay has come: kept in memory, and written with the writer's next transaction."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from approvaltrail.schemas.messages import SequenceRange

if TYPE_CHECKING:
    from collections.abc import Iterable

    from approvaltrail.producer.database import Statement
    from approvaltrail.producer.state import JournalState


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One state of progress, to be written."""

    relayed_sequence: int
    relayed_seal: int
    repaired_at: int
    lost: tuple[SequenceRange, ...]

    def statements(self) -> list[Statement]:
        """Return what writes this step."""
        sql = "UPDATE state SET relayed_sequence = ?, relayed_seal = ?, repaired_at = ?"
        written: list[Statement] = [
            (sql, (self.relayed_sequence, self.relayed_seal, self.repaired_at))
        ]
        written += [
            (
                "INSERT OR REPLACE INTO lost VALUES (?,?,?)",
                (lost.first_sequence, lost.last_sequence, lost.reason),
            )
            for lost in self.lost
        ]
        return written


class Progress:
    """Moved by the relay's thread, written by the writer's.

    A position that was not written costs only duplicates: the relay begins again behind it.
    """

    def __init__(self, state: JournalState, lost: Iterable[SequenceRange]) -> None:
        self._lock = threading.Lock()
        self.relayed_sequence = state.relayed_sequence
        self.relayed_seal = state.relayed_seal
        self.repaired_at = state.repaired_at
        self.lost: tuple[SequenceRange, ...] = tuple(lost)
        self._unwritten_lost: tuple[SequenceRange, ...] = ()
        self._written = (self.relayed_sequence, self.relayed_seal, self.repaired_at)

    def advance(self, sequence: int) -> None:
        """Say that every number up to this one was acknowledged, or declared lost."""
        self.relayed_sequence = max(self.relayed_sequence, sequence)

    def advance_seal(self, number: int) -> None:
        """Say that every seal up to this one was acknowledged."""
        self.relayed_seal = max(self.relayed_seal, number)

    def repaired(self, requested_at: int) -> None:
        """Say that every request up to this time (µs) was served."""
        self.repaired_at = max(self.repaired_at, requested_at)

    def lose(self, lost: SequenceRange) -> None:
        """Declare numbers that no one can send any more."""
        with self._lock:
            if any(_covers(known, lost) for known in self.lost):
                return
            first = lost.first_sequence
            others = [known for known in self.lost if known.first_sequence != first]
            self.lost = (*others, lost)
            self._unwritten_lost = (*self._unwritten_lost, lost)

    def unwritten(self) -> Step | None:
        """Return what is to be written, if anything is."""
        positions = (self.relayed_sequence, self.relayed_seal, self.repaired_at)
        lost = self._unwritten_lost
        if positions == self._written and not lost:
            return None
        relayed, seal, repaired = positions
        return Step(relayed_sequence=relayed, relayed_seal=seal, repaired_at=repaired, lost=lost)

    def confirm(self, step: Step) -> None:
        """Take note that a step is on disk."""
        self._written = (step.relayed_sequence, step.relayed_seal, step.repaired_at)
        with self._lock:
            self._unwritten_lost = self._unwritten_lost[len(step.lost) :]


def _covers(known: SequenceRange, other: SequenceRange) -> bool:
    return (
        known.first_sequence <= other.first_sequence and other.last_sequence <= known.last_sequence
    )
