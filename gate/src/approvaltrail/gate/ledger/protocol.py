"""The seam to the ledger: where a nonce is spent, once.

The insert is the claim; there is no read before it, since two instances would both read "not
spent". A claim carries an id of its own (the accepting event's): when an acknowledgement was lost
and the claim is repeated, one's own row is recognised and is not called a replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from approvaltrail.schemas.messages import Probe


class Scope(StrEnum):
    """Who sees a ledger's claims, and so for how many processes it can answer."""

    PROCESS = "process"
    MACHINE = "machine"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One attempt to spend a nonce."""

    nonce: str
    claim_id: str
    issued_at: datetime
    expires_at: datetime
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The nonce is spent by this claim, and the ledger has it on record."""

    spent_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadySpent:
    """The nonce was spent before, at that time by that claim."""

    spent_at: datetime
    claim_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PredatesLedger:
    """The token is older than the ledger, which cannot know whether it was spent."""

    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The ledger has dropped the claims of tokens that expired so early, this one's among them.

    It has seen a time at which the token was long past its expiry, so that only a clock that went
    back, or one far behind, can take the token for unexpired.
    """

    expired_by: datetime


Answer = Claimed | AlreadySpent | PredatesLedger | Forgotten
"""What a claim can be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentNonce:
    """A claim as the ledger keeps it."""

    nonce: str
    claim_id: str
    spent_at: datetime
    expires_at: datetime
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long a spent nonce is kept: until no instance could accept its token any more."""

    skew: timedelta = timedelta(seconds=5)
    """How far the clocks of two instances may differ."""
    grace: timedelta = timedelta(seconds=60)

    def __post_init__(self) -> None:
        if not timedelta(0) <= self.skew <= self.grace:
            raise ValueError("the grace must be at least the skew: the pruner's clock may be ahead")

    def droppable(self, now: datetime) -> datetime:
        """Return the instant: claims whose tokens expired at it or before may go."""
        return now - self.skew - self.grace


DEFAULT_RETENTION: Final = Retention()


class Ledger(Protocol):
    """Spends nonces; every error means that nothing may be executed."""

    @property
    def scope(self) -> Scope:
        """Who sees the claims."""
        ...

    @property
    def blocks(self) -> bool:
        """Whether calls wait for a disk or a network, and so belong in a thread."""
        ...

    @property
    def created_at(self) -> datetime:
        """Since when the ledger remembers; tokens issued before are refused.

        Raises:
            LedgerUnavailableError: it cannot be opened.
        """
        ...

    def prepare(self) -> None:
        """Open the ledger, so that it is older than the token that is about to be issued.

        Raises:
            LedgerUnavailableError: it cannot be opened.
        """
        ...

    def claim(self, claim: Claim) -> Answer:
        """Spend the nonce, durably and in a transaction of its own.

        Raises:
            LedgerUnavailableError: not asked, or the answer is unknown.
            LedgerFullError: at the bound, and every nonce kept is one that could still come back.
        """
        ...

    def is_spent(self, nonce: str, issued_at: datetime) -> AlreadySpent | PredatesLedger | None:
        """Say whether a claim of the nonce would fail, without claiming; errors as `claim`."""
        ...

    def probe(self) -> Probe:
        """Say whether the ledger answers now; never raises."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


class ClaimsListing(Protocol):
    """What a ledger offers to whoever compares its claims with the record of events."""

    @property
    def created_at(self) -> datetime:
        """Since when the ledger remembers."""
        ...

    @property
    def pruned_until(self) -> datetime:
        """The ledger dropped claims of tokens that expired at that instant or before."""
        ...

    def claims(self, start: datetime, end: datetime) -> Iterator[SpentNonce]:
        """Yield the claims spent from `start` (in) to `end` (out), in no particular order.

        Raises:
            LedgerUnavailableError: it cannot be read.
        """
        ...
