"""A ledger in this process's memory: right for one process, wrong for two."""

from __future__ import annotations

import heapq
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from approvaltrail.gate.clock import Clock, SystemClock
from approvaltrail.gate.errors import LedgerFullError, LedgerMisconfiguredError
from approvaltrail.gate.ledger.protocol import (
    DEFAULT_RETENTION,
    AlreadySpent,
    Answer,
    Claim,
    Claimed,
    Forgotten,
    PredatesLedger,
    Retention,
    Scope,
    SpentNonce,
)
from approvaltrail.schemas.messages import Probe

DEFAULT_CAPACITY: Final = 100_000


class MemoryLedger:
    """Keeps spent nonces in a map of bounded size.

    At the bound a new claim is refused and counted in `full_refusals`; a nonce whose token could
    still be presented is never dropped to make room. A forked child holds a copy that nobody else
    sees, and its parent's secret with it: there the ledger refuses everything.
    """

    scope: Final = Scope.PROCESS
    blocks: Final = False

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        capacity: int = DEFAULT_CAPACITY,
        retention: Retention = DEFAULT_RETENTION,
    ) -> None:
        self._clock = clock or SystemClock()
        self._capacity = capacity
        self._retention = retention
        self._created_at = self._clock.now()
        self._pruned_until = datetime.min.replace(tzinfo=UTC)
        self._spent: dict[str, SpentNonce] = {}
        self._by_expiry: list[tuple[datetime, str]] = []
        self._lock = threading.Lock()
        self._process = os.getpid()
        self.full_refusals = 0

    @property
    def created_at(self) -> datetime:
        """When this process made it."""
        return self._created_at

    @property
    def pruned_until(self) -> datetime:
        """The expiry up to which claims were dropped."""
        return self._pruned_until

    def prepare(self) -> None:
        """Return where it is there: in the process that made it."""
        if self._process != os.getpid():
            raise LedgerMisconfiguredError(
                "a ledger in memory was made before this process was forked, and each process "
                "would accept a token once; use a SQLite store or a control database"
            )

    def claim(self, claim: Claim) -> Answer:
        """Spend the nonce; see `Ledger.claim`."""
        self.prepare()
        with self._lock:
            now = self._clock.now()
            spent = self._look(claim.nonce, claim.issued_at)
            if isinstance(spent, AlreadySpent) and spent.claim_id == claim.claim_id:
                return Claimed(spent_at=spent.spent_at)
            if spent is not None:
                return spent
            self._prune(now)
            if claim.expires_at <= self._pruned_until:
                return Forgotten(expired_by=self._pruned_until)
            if len(self._spent) >= self._capacity:
                self.full_refusals += 1
                raise LedgerFullError(
                    f"the ledger holds {self._capacity} nonces that could still be presented; "
                    "retry after some of their tokens have expired"
                )
            self._spent[claim.nonce] = SpentNonce(
                nonce=claim.nonce,
                claim_id=claim.claim_id,
                spent_at=now,
                expires_at=claim.expires_at,
                tool=claim.tool,
            )
            heapq.heappush(self._by_expiry, (claim.expires_at, claim.nonce))
            return Claimed(spent_at=now)

    def is_spent(self, nonce: str, issued_at: datetime) -> AlreadySpent | PredatesLedger | None:
        """Look without spending; see `Ledger.is_spent`."""
        self.prepare()
        with self._lock:
            return self._look(nonce, issued_at)

    def claims(self, start: datetime, end: datetime) -> Iterator[SpentNonce]:
        """Yield the claims spent from `start` (in) to `end` (out)."""
        with self._lock:
            kept = tuple(self._spent.values())
        return (claim for claim in kept if start <= claim.spent_at < end)

    def probe(self) -> Probe:
        """Say that it answers, which it does in the process that made it."""
        return Probe.OK if self._process == os.getpid() else Probe.FAILING

    def close(self) -> None:
        """Do nothing: the claims stay as long as the object."""

    def _look(self, nonce: str, issued_at: datetime) -> AlreadySpent | PredatesLedger | None:
        if issued_at < self._created_at:
            return PredatesLedger(created_at=self._created_at)
        kept = self._spent.get(nonce)
        if kept is None:
            return None
        return AlreadySpent(spent_at=kept.spent_at, claim_id=kept.claim_id)

    def _prune(self, now: datetime) -> None:
        droppable = self._retention.droppable(now)
        while self._by_expiry and self._by_expiry[0][0] <= droppable:
            _, nonce = heapq.heappop(self._by_expiry)
            del self._spent[nonce]
            self._pruned_until = max(self._pruned_until, droppable)
