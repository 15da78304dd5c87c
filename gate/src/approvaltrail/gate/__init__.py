"""Decides: confirmation tokens, plan hashes, ledgers and refusals."""

from __future__ import annotations

from approvaltrail.gate.arguments import ConfirmArguments
from approvaltrail.gate.attempt import Acceptance, Confirmed, Preflight
from approvaltrail.gate.caller import Caller
from approvaltrail.gate.clock import Clock, SystemClock
from approvaltrail.gate.errors import (
    GateError,
    LedgerError,
    LedgerFullError,
    LedgerUnavailableError,
    NotRecordedError,
    OutcomeUnknownError,
    PlanError,
    PlanUnavailableError,
    PreflightRefusedError,
    SecretError,
    StartupRefusedError,
    TokenStoreError,
)
from approvaltrail.gate.gate import Gate
from approvaltrail.gate.ledger import Ledger, MemoryLedger, SqliteLedger
from approvaltrail.gate.plan import Plan, plan_hash
from approvaltrail.gate.refusals import REFUSALS, NextMove, Refusal
from approvaltrail.gate.scrub import scrub_secrets
from approvaltrail.gate.settings import Deployment, GateSettings, LedgerKind
from approvaltrail.gate.tools import TOOLS, Tool
from approvaltrail.gate.verify import Verified

__all__ = [
    "REFUSALS",
    "TOOLS",
    "Acceptance",
    "Caller",
    "Clock",
    "ConfirmArguments",
    "Confirmed",
    "Deployment",
    "Gate",
    "GateError",
    "GateSettings",
    "Ledger",
    "LedgerError",
    "LedgerFullError",
    "LedgerKind",
    "LedgerUnavailableError",
    "MemoryLedger",
    "NextMove",
    "NotRecordedError",
    "OutcomeUnknownError",
    "Plan",
    "PlanError",
    "PlanUnavailableError",
    "Preflight",
    "PreflightRefusedError",
    "Refusal",
    "SecretError",
    "SqliteLedger",
    "StartupRefusedError",
    "SystemClock",
    "TokenStoreError",
    "Tool",
    "Verified",
    "plan_hash",
    "scrub_secrets",
]
