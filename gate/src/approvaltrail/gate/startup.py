"""When a gate must not start: one table, and every reason at once.

Each rule stops a breakage that nobody would see: tokens that stop verifying after a restart, or a
token that each of two processes accepts once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from approvaltrail.gate.clock import Clock
from approvaltrail.gate.errors import (
    LedgerError,
    LedgerMisconfiguredError,
    SecretError,
    StartupRefusedError,
)
from approvaltrail.gate.keys import Key, KeyRing, ring_of
from approvaltrail.gate.ledger import Ledger, MemoryLedger, Scope, SqliteLedger
from approvaltrail.gate.ledger.dsn import Family, read_dsn
from approvaltrail.gate.settings import Deployment, GateSettings, LedgerKind

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the rules look at."""

    settings: GateSettings
    scope: Scope | None
    """Who will see the ledger's claims; None where no ledger can be had."""
    shared_secret: bool
    """The secret is configured, so that other processes may hold it too."""
    secret_problem: str | None = None
    dsn_problem: str | None = None

    @property
    def writable_remote(self) -> bool:
        """Whether calls that change something come over a network."""
        return self.settings.deployment is Deployment.REMOTE and self.settings.writable


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One reason not to start."""

    code: str
    broken: Callable[[Facts], bool]
    problem: Callable[[Facts], str]


RULES: Final = (
    Rule(
        code="secret_unusable",
        broken=lambda facts: facts.secret_problem is not None,
        problem=lambda facts: facts.secret_problem or "",
    ),
    Rule(
        code="remote_without_secret",
        broken=lambda facts: facts.writable_remote and not facts.shared_secret,
        problem=lambda _: (
            "CONFIRM_SECRET is not set: a secret of this process alone would make every "
            "outstanding token worthless at a restart, unnoticed; set it to 32 bytes or more"
        ),
    ),
    Rule(
        code="remote_without_control_database",
        broken=lambda facts: facts.writable_remote and facts.scope in {None, Scope.PROCESS},
        problem=lambda _: (
            "CONTROL_DSN is not set: with a ledger in memory each process would accept the same "
            "token once; name the control database that all of them share"
        ),
    ),
    Rule(
        code="remote_with_machine_ledger",
        broken=lambda facts: (
            facts.writable_remote
            and facts.scope is Scope.MACHINE
            and not facts.settings.single_process
        ),
        problem=lambda _: (
            "the ledger is a SQLite file, which processes on other machines do not see; name a "
            "shared database in CONTROL_DSN, or set APPROVALTRAIL_SINGLE_PROCESS=true if no other "
            "process serves these tools"
        ),
    ),
    Rule(
        code="shared_secret_with_memory_ledger",
        broken=lambda facts: (
            facts.settings.deployment is Deployment.STDIO
            and facts.settings.writable
            and facts.shared_secret
            and facts.scope is Scope.PROCESS
        ),
        problem=lambda _: (
            "CONFIRM_SECRET is shared but the ledger is this process's memory, so that another "
            "process would accept a used token; use APPROVALTRAIL_LEDGER=sqlite, or unset the "
            "secret"
        ),
    ),
    Rule(
        code="control_dsn_unusable",
        broken=lambda facts: facts.dsn_problem is not None,
        problem=lambda facts: facts.dsn_problem or "",
    ),
)


def ledger_kind(settings: GateSettings) -> LedgerKind:
    """Choose the ledger: as told; else the control database; else shared where the secret is."""
    if settings.ledger is not None:
        return settings.ledger
    if settings.control_dsn is not None:
        return LedgerKind.CONTROL
    if settings.deployment is Deployment.STDIO and settings.confirm_secret is not None:
        return LedgerKind.SQLITE
    return LedgerKind.MEMORY


def check_startup(settings: GateSettings, ledger: Ledger | None = None) -> None:
    """Return if a gate may start with these settings, and with this ledger where one is given.

    Raises:
        StartupRefusedError: naming every rule that is broken.
    """
    facts = _facts(settings, ledger)
    problems = tuple(rule.problem(facts) for rule in RULES if rule.broken(facts))
    if problems:
        raise StartupRefusedError(problems)


def open_ledger(settings: GateSettings, clock: Clock) -> Ledger:
    """Make the ledger that the settings name; call `check_startup` first.

    Raises:
        StartupRefusedError: the control database's DSN cannot be used as it stands.
    """
    match ledger_kind(settings):
        case LedgerKind.MEMORY:
            return MemoryLedger(clock=clock)
        case LedgerKind.SQLITE:
            return SqliteLedger(settings.token_store, clock=clock)
        case LedgerKind.CONTROL:
            return _control_ledger(settings, clock)


def _control_ledger(settings: GateSettings, clock: Clock) -> Ledger:
    dsn = read_dsn(_control_dsn(settings))
    if dsn.family is Family.SQLITE:
        return SqliteLedger(dsn.path, clock=clock)
    from approvaltrail.gate.ledger.sql import SqlLedger  # noqa: PLC0415 - needs the extra

    try:
        return SqlLedger(dsn.text, clock=clock)
    except LedgerMisconfiguredError as error:
        raise StartupRefusedError((str(error),)) from error


def check_ledger(ledger: Ledger) -> None:
    """Return unless a shared ledger answers that it is not set up as claims need it.

    One that cannot be reached is no reason not to start: it locks the ledgered tools alone, until
    it answers. Nothing is asked of other ledgers, which are made when they are first needed.

    Raises:
        StartupRefusedError: naming the setting, the right or the table.
    """
    if ledger.scope is not Scope.CLUSTER:
        return
    try:
        ledger.prepare()
    except LedgerMisconfiguredError as error:
        raise StartupRefusedError((str(error),)) from error
    except LedgerError as error:
        _log.warning("ledger_not_reached_at_start", error=type(error).__name__, what=str(error))


def keys_of(settings: GateSettings) -> KeyRing:
    """Make the key ring; without a secret an ephemeral one, with a warning where it matters."""
    secret, previous = settings.confirm_secret, settings.confirm_secret_previous
    return ring_of(
        None if secret is None else secret.get_secret_value(),
        [] if previous is None else [previous.get_secret_value()],
    )


def _facts(settings: GateSettings, ledger: Ledger | None) -> Facts:
    kind = ledger_kind(settings)
    dsn_problem = None
    if ledger is not None:
        scope: Scope | None = ledger.scope
    elif kind is LedgerKind.CONTROL:
        scope, dsn_problem = _scope_and_problem(settings)
    else:
        scope = Scope.MACHINE if kind is LedgerKind.SQLITE else Scope.PROCESS
    return Facts(
        settings=settings,
        scope=scope,
        shared_secret=settings.confirm_secret is not None,
        secret_problem=_secret_problem(settings),
        dsn_problem=dsn_problem,
    )


def _secret_problem(settings: GateSettings) -> str | None:
    named = {
        "CONFIRM_SECRET": settings.confirm_secret,
        "CONFIRM_SECRET_PREVIOUS": settings.confirm_secret_previous,
    }
    for name, secret in named.items():
        if secret is None:
            continue
        try:
            Key(secret=secret.get_secret_value().encode())
        except SecretError as error:
            return f"{name}: {error}"
    return None


def _control_dsn(settings: GateSettings) -> str:
    return "" if settings.control_dsn is None else settings.control_dsn.get_secret_value()


def _scope_and_problem(settings: GateSettings) -> tuple[Scope, str | None]:
    """Say who sees the claims of the control database, or why it cannot be used.

    A DSN with a problem is judged by that rule alone, and so passes for a shared one.
    """
    if settings.control_dsn is None:
        return Scope.CLUSTER, "APPROVALTRAIL_LEDGER is control, but CONTROL_DSN is not set; set it"
    try:
        family = read_dsn(_control_dsn(settings)).family
    except LedgerMisconfiguredError as error:
        return Scope.CLUSTER, str(error)
    return (Scope.MACHINE if family is Family.SQLITE else Scope.CLUSTER), None
