"""Seals: every few seconds the writer closes a segment of its journal under one root.

A seal covers the events after the previous one, names that seal's digest, and so chains back to
the journal's first event. One changed, added or missing byte changes a root.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from approvaltrail.producer.merkle import MerkleTree, merkle_root
from approvaltrail.schemas.encoding import instant_of
from approvaltrail.schemas.messages import Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from approvaltrail.producer.state import JournalState

NO_SEAL: Final = "0" * 64
"""Stands for the digest of the seal before the first."""


def seal_digest(encoded: bytes) -> str:
    """Return the digest by which the next seal names this one."""
    return hashlib.sha256(encoded).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadySeal:
    """A seal, encoded, that waits for the transaction which stores it."""

    number: int
    last_sequence: int
    body: bytes
    digest: str


class Sealed(NamedTuple):
    """How far a journal is sealed: one value, for other threads must not see half a step."""

    number: int
    """Number of the last seal."""
    sequence: int
    """Every number up to this one is under a seal."""


class Sealer:
    """Follows what the writer commits and says when a segment is due."""

    def __init__(
        self,
        state: JournalState,
        *,
        events: int,
        seconds: float,
        clock: Callable[[], int],
    ) -> None:
        """Continue after the state's last seal; `clock` gives µs since the epoch."""
        self._producer_id = state.producer_id
        self._events = events
        self._microseconds = round(seconds * 1_000_000)
        self._clock = clock
        self.sealed = Sealed(state.seal_number, state.sealed_sequence)
        self._digest = state.seal_digest
        self._tree = MerkleTree()
        self._opened_at = 0

    def add(self, bodies: Iterable[bytes]) -> None:
        """Take committed events, in order."""
        if not self._tree.size:
            self._opened_at = self._clock()
        for body in bodies:
            self._tree.add(body)

    @property
    def unsealed_events(self) -> int:
        """How many events wait for a seal."""
        return self._tree.size

    def due(self) -> bool:
        """Say whether the open segment is large or old enough."""
        if not self._tree.size:
            return False
        return self._tree.size >= self._events or self.seconds_left() <= 0

    def seconds_left(self) -> float:
        """How long the open segment may stay open."""
        now = self._clock()
        self._opened_at = min(self._opened_at, now)  # a clock that was set back delays no seal
        return (self._opened_at + self._microseconds - now) / 1_000_000

    def ready(self) -> ReadySeal:
        """Seal the open segment; it counts once `confirm` is called after the commit."""
        number, sequence = self.sealed
        last = sequence + self._tree.size
        seal = Seal(
            producer_id=self._producer_id,
            seal_number=number + 1,
            first_sequence=sequence + 1,
            last_sequence=last,
            merkle_root=self._tree.root().hex(),
            previous_seal_digest=self._digest,
            sealed_at=instant_of(self._clock()),
        )
        body = seal.encode()
        return ReadySeal(
            number=seal.seal_number, last_sequence=last, body=body, digest=seal_digest(body)
        )

    def confirm(self, seal: ReadySeal) -> None:
        """Begin the next segment after the seal's commit."""
        self.sealed, self._digest = Sealed(seal.number, seal.last_sequence), seal.digest
        self._tree = MerkleTree()


@dataclass(frozen=True, slots=True, kw_only=True)
class SealFault:
    """What does not hold, and at which seal."""

    seal_number: int
    problem: str


def verify_seals(
    seals: Sequence[bytes], bodies: Callable[[int, int], Sequence[bytes]]
) -> tuple[SealFault, ...]:
    """Recompute every seal from the events it covers.

    Args:
        seals: encoded seals of one journal, in order, from the first.
        bodies: gives the events' bytes from a first to a last sequence, both included.

    Returns:
        What does not hold; empty if everything was recomputed and agrees.
    """
    faults: list[SealFault] = []
    digest, sequence = NO_SEAL, 0
    for number, encoded in enumerate(seals, start=1):
        seal = Seal.decode(encoded)
        covered = bodies(seal.first_sequence, seal.last_sequence)
        faults += [
            SealFault(seal_number=seal.seal_number, problem=problem)
            for holds, problem in (
                (seal.seal_number == number, "the seals are not numbered without gaps"),
                (seal.previous_seal_digest == digest, "it does not name the seal before it"),
                (seal.first_sequence == sequence + 1, "it does not begin where the last one ended"),
                (
                    len(covered) == seal.last_sequence - seal.first_sequence + 1,
                    "events of its range are missing",
                ),
                (
                    merkle_root(covered).hex() == seal.merkle_root,
                    "its root differs from its events",
                ),
            )
            if not holds
        ]
        digest, sequence = seal_digest(encoded), seal.last_sequence
    return tuple(faults)
