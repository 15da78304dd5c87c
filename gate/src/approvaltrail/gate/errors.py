"""What can go wrong in the gate.

GateError
├── SecretError              the signing secret is empty or too short
├── PlanError                a plan holds what cannot be shown, hashed or bounded
├── UnknownToolError         a tool that is not in the table
├── OutcomeUnknownError      for the embedding server: nobody knows whether the work was done
├── StartupRefusedError      the settings allow no safe start; names every reason
├── PreflightRefusedError    no token was issued; carries the refusal
│   ├── PlanUnavailableError     the plan could not be made
│   ├── NotRecordedError         the issuance could not be recorded
│   ├── LedgerNotReadyError      the ledger that the token needs cannot be opened
│   └── TenantRequiredError      a remote call without a tenant
└── LedgerError
    ├── LedgerUnavailableError   the ledger could not be asked
    │   ├── LedgerUnreachableError     no connection, or one that was lost
    │   ├── LedgerTimeoutError         no answer in time
    │   ├── LedgerBusyError            others held it for longer than one waits
    │   ├── LedgerReadOnlyError        it takes no writes
    │   ├── LedgerMisconfiguredError   a setting, a right or a table is not as it must be
    │   └── TokenStoreError            the store's file cannot be opened, read or written
    │       ├── TokenStoreBusyError        and a LedgerBusyError
    │       └── TokenStoreReadOnlyError    and a LedgerReadOnlyError
    └── LedgerFullError          the ledger is at its bound
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from approvaltrail.gate.refusals import Refusal


class GateError(Exception):
    """Base of the gate's errors; no message carries a token, a secret or a caller's payload."""

    retriable: ClassVar[bool] = False


class SecretError(GateError):
    """The signing secret cannot be used."""


class PlanError(GateError):
    """A plan breaks a rule that its maker must keep; the message names the place and the rule."""


class UnknownToolError(GateError):
    """The gate has no such tool; give a `Tool` value or add it to the gate's table."""


class OutcomeUnknownError(GateError):
    """The work was begun, and nobody can say whether it was done: an answer was lost, say.

    Raised by what the gate executes, `from` the error that it met. The end is then recorded as
    unknown, not as failed; the token stays spent.
    """


class StartupRefusedError(GateError):
    """The settings allow no safe start; `problems` holds every reason, not only the first."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        """Take one sentence a reason."""
        super().__init__("the gate refuses to start:\n" + "\n".join(f"- {p}" for p in problems))
        self.problems = problems


class PreflightRefusedError(GateError):
    """No token was issued and nothing was executed; `refusal` says what to do next."""

    def __init__(self, refusal: Refusal) -> None:
        """Take the refusal that the caller is to see."""
        super().__init__(refusal.text)
        self.refusal = refusal


class PlanUnavailableError(PreflightRefusedError):
    """The plan could not be made: a lookup failed, which is no fact to approve."""

    retriable: ClassVar[bool] = True


class NotRecordedError(PreflightRefusedError):
    """The issuance could not be recorded."""

    retriable: ClassVar[bool] = True


class LedgerNotReadyError(PreflightRefusedError):
    """The ledger that would have to spend the token cannot be opened."""

    retriable: ClassVar[bool] = True


class TenantRequiredError(PreflightRefusedError):
    """A remote gate issues for a known tenant alone."""


class LedgerError(GateError):
    """Base of the ledgers' errors: whoever meets one executes nothing."""

    retriable: ClassVar[bool] = True


class LedgerUnavailableError(LedgerError):
    """The ledger could not be asked, or its answer is unknown."""


class LedgerUnreachableError(LedgerUnavailableError):
    """There is no connection, or it was lost: what was asked last may have been done."""


class LedgerTimeoutError(LedgerUnavailableError):
    """No answer came in time."""


class LedgerBusyError(LedgerUnavailableError):
    """Others held it for longer than one waits: no outage, and nothing was spent."""


class LedgerReadOnlyError(LedgerUnavailableError):
    """It takes no writes: a replica, or switched to reading."""


class LedgerMisconfiguredError(LedgerUnavailableError):
    """A setting, a right or a table is not as it must be; the message names it."""

    retriable: ClassVar[bool] = False


class TokenStoreError(LedgerUnavailableError):
    """The token store's file cannot be opened, read or written."""


class TokenStoreBusyError(TokenStoreError, LedgerBusyError):
    """Another process or thread held the file for longer than one waits."""


class TokenStoreReadOnlyError(TokenStoreError, LedgerReadOnlyError):
    """The file or its folder cannot be written."""


class LedgerFullError(LedgerError):
    """The ledger is at its bound and drops no nonce that a token could still present."""
