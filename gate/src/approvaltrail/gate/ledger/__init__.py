"""Ledgers: where a nonce is spent, once.

`approvaltrail.gate.ledger.sql` has `SqlLedger` and `migrate_ledger`; it needs the extra `sql`, and
so it is imported by its own name only.
"""

from __future__ import annotations

from approvaltrail.gate.ledger.memory import MemoryLedger
from approvaltrail.gate.ledger.protocol import (
    AlreadySpent,
    Answer,
    Claim,
    Claimed,
    ClaimsListing,
    Forgotten,
    Ledger,
    PredatesLedger,
    Retention,
    Scope,
    SpentNonce,
)
from approvaltrail.gate.ledger.sqlite import SqliteLedger

__all__ = [
    "AlreadySpent",
    "Answer",
    "Claim",
    "Claimed",
    "ClaimsListing",
    "Forgotten",
    "Ledger",
    "MemoryLedger",
    "PredatesLedger",
    "Retention",
    "Scope",
    "SpentNonce",
    "SqliteLedger",
]
