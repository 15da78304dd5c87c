"""Where the ledgers of tests are kept: a value that other processes can open too."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from approvaltrail.gate.clock import Clock
from approvaltrail.gate.ledger import MemoryLedger, Retention, SqliteLedger
from approvaltrail.gate.ledger.sql import SqlLedger, migrate_ledger
from approvaltrail.gate.ledger.sql_engine import Waits

KINDS = ("memory", "sqlite", "mysql", "postgresql")
RETENTION = Retention(skew=timedelta(seconds=5), grace=timedelta(seconds=60))
AnyLedger = MemoryLedger | SqliteLedger | SqlLedger


@dataclass(frozen=True, kw_only=True)
class LedgerPlace:
    """A kind of ledger, and its file or DSN."""

    kind: str
    where: str

    def migrate(self, clock: Clock) -> None:
        """Make a SQL ledger's tables, as if every clock agreed."""
        migrate_ledger(self.where, clock=clock, skew=timedelta(0))

    def open(self, clock: Clock, *, busy_seconds: float = 10, prune_every: int = 1) -> AnyLedger:
        """Open the ledger; one in memory is another each time."""
        if self.kind == "memory":
            return MemoryLedger(clock=clock, retention=RETENTION)
        if self.kind == "sqlite":
            return SqliteLedger(
                self.where,
                clock=clock,
                retention=RETENTION,
                busy_seconds=busy_seconds,
                prune_every=prune_every,
            )
        return SqlLedger(
            self.where,
            clock=clock,
            retention=RETENTION,
            waits=Waits(busy_seconds=busy_seconds, answer_seconds=2 * busy_seconds),
            prune_every=prune_every,
        )
