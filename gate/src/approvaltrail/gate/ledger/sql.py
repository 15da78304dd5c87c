"""A ledger in a shared database: MariaDB, MySQL, TiDB or PostgreSQL, through SQLAlchemy Core.

One INSERT is the claim, in a transaction of its own, and its COMMIT decides. A duplicate of exactly
our key is a replay; every other error refuses. Needs the extra `approvaltrail-gate[sql]`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final, TypeVar

import structlog

from approvaltrail.gate.clock import Clock, SystemClock
from approvaltrail.gate.errors import LedgerError, LedgerUnreachableError
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
from approvaltrail.gate.ledger.sql_tables import check_tables, no_tables

# isort: split
# the line above says what to install where SQLAlchemy is missing
from sqlalchemy import Connection, Engine, Row

from approvaltrail.gate.ledger import sql_statements as statements
from approvaltrail.gate.ledger.sql_engine import DEFAULT_WAITS, Waits, open_engine, server_dsn
from approvaltrail.gate.ledger.sql_faults import UNKNOWN, Fault, fault_of, meaning, was_reported
from approvaltrail.gate.ledger.sql_migration import migrate_ledger
from approvaltrail.schemas.encoding import instant_of, microseconds
from approvaltrail.schemas.messages import Probe

__all__ = ["DEFAULT_WAITS", "SqlLedger", "Waits", "migrate_ledger"]

PRUNE_EVERY: Final = 256
PRUNED_AT_ONCE: Final = 1_000
PAGE: Final = 1_000
_PAUSE_SECONDS: Final = 0.01
_T = TypeVar("_T")
_log = structlog.get_logger(__name__)


class SqlLedger:
    """Spends nonces in a database that all processes of a deployment share.

    Connections are opened when they are first needed, are bounded in number and time, and are not
    shared with a forked child. A claim whose acknowledgement was lost is asked again under its own
    id; one that meets others' locks is asked again until `waits.busy_seconds` have passed.

    Raises:
        LedgerMisconfiguredError: the DSN names no SQL ledger.
    """

    scope: Final = Scope.CLUSTER
    blocks: Final = True

    def __init__(
        self,
        dsn: str,
        *,
        clock: Clock | None = None,
        retention: Retention = DEFAULT_RETENTION,
        waits: Waits = DEFAULT_WAITS,
        prune_every: int = PRUNE_EVERY,
    ) -> None:
        self._dsn = server_dsn(dsn)
        self._clock = clock or SystemClock()
        self._retention = retention
        self._waits = waits
        self._prune_every = prune_every
        self._engine = open_engine(self._dsn, waits)
        self._checked = False
        self._process = os.getpid()
        self._of_parents: list[Engine] = []
        self._lock = threading.Lock()
        self._claims = 0

    def __repr__(self) -> str:
        return f"SqlLedger({self._dsn.family.value})"

    @property
    def created_at(self) -> datetime:
        """Since when the ledger remembers."""
        return instant_of(self._guarded(lambda: self._look("")).created_at)

    @property
    def pruned_until(self) -> datetime:
        """The expiry up to which claims were dropped."""
        return instant_of(self._guarded(lambda: self._look("")).pruned_until)

    def prepare(self) -> None:
        """Connect and check settings and tables, unless that was done."""
        if not self._checked or self._process != os.getpid():
            self._guarded(lambda: self._look(""))

    def claim(self, claim: Claim) -> Answer:
        """Spend the nonce; see `Ledger.claim`."""
        answer = self._guarded(lambda: self._spend(claim))
        if isinstance(answer, Claimed):
            self._prune_sometimes()
        return answer

    def is_spent(self, nonce: str, issued_at: datetime) -> AlreadySpent | PredatesLedger | None:
        """Look without spending; see `Ledger.is_spent`."""
        row = self._guarded(lambda: self._look(nonce))
        return _spent(row) or _predates(row, issued_at)

    def probe(self) -> Probe:
        """Say whether the database answers a look now."""
        try:
            self._guarded(lambda: self._look(""))
        except LedgerError:
            return Probe.FAILING
        return Probe.OK

    def claims(self, start: datetime, end: datetime) -> Iterator[SpentNonce]:
        """Yield the claims spent from `start` (in) to `end` (out)."""
        after = ""
        while True:
            page = self._guarded(functools.partial(self._page, start, end, after))
            yield from map(_spent_nonce, page)
            if len(page) < PAGE:
                return
            after = page[-1].nonce

    def prune(self) -> int:
        """Drop claims that no token can need any more; return how many went."""
        return self._guarded(self._prune)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _prune(self) -> int:
        """Prune.

        The database's time bounds one's own: a clock that is ahead drops nothing early. The mark
        is committed before any row goes, so that no claim finds neither row nor mark.
        """
        with self._connected() as connection:
            now = connection.execute(statements.database_time(connection.dialect.name)).scalar_one()
            now = min(instant_of(int(now)), self._clock.now())
            until = microseconds(self._retention.droppable(now))
            nonces = list(connection.execute(statements.expired(until, PRUNED_AT_ONCE)).scalars())
            if nonces:
                connection.execute(statements.move_mark(until))
                connection.commit()
                connection.execute(statements.delete_expired(nonces, until))
        return len(nonces)

    def _guarded(self, work: Callable[[], _T]) -> _T:
        """Do the work, its errors mapped.

        What is busy is asked again within the bound. What became of a lost or unclear answer is
        asked once more; if that stays unclear, no later error may pass for a certain one.
        """
        deadline = time.monotonic() + self._waits.busy_seconds
        unclear: Exception | None = None
        pause = _PAUSE_SECONDS
        while True:
            try:
                return work()
            except Exception as error:
                fault = _fault(error)
                if fault is Fault.BUSY and time.monotonic() + pause < deadline:
                    time.sleep(pause)
                    pause *= 2
                elif fault in UNKNOWN and unclear is None:
                    unclear = error
                else:
                    raise self._outcome(error, unclear) from error

    def _outcome(self, error: Exception, unclear: Exception | None) -> LedgerError:
        mapped = meaning(error)
        if unclear is None or isinstance(mapped, LedgerUnreachableError):
            return mapped
        if _fault(error) in UNKNOWN:
            return mapped
        _log.error("ledger_claim_unclear", then=type(mapped).__name__)
        return meaning(unclear)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Give a connection in a transaction of its own, which commits at the end.

        A connection whose last answer was not read to its end is never used again: the next claim
        would read that answer as its own.
        """
        with self._current_engine().connect() as connection:
            try:
                if not self._checked:
                    check_tables(connection)
                    connection.commit()
                    self._checked = True
                yield connection
                connection.commit()
            except BaseException as error:
                if not (was_reported(error) or isinstance(error, LedgerError)):
                    connection.invalidate()
                raise

    def _current_engine(self) -> Engine:
        if self._process != os.getpid():  # forked: the parent's connections are not ours
            self._of_parents.append(self._engine)  # theirs to close
            self._lock = threading.Lock()
            self._engine, self._process = open_engine(self._dsn, self._waits), os.getpid()
        return self._engine

    def _spend(self, claim: Claim) -> Answer:
        now = self._clock.now()
        values = statements.claim_values(claim, now)
        try:
            with self._connected() as connection:
                inserted = connection.execute(
                    statements.INSERT, values, execution_options={"preserve_rowcount": True}
                ).rowcount
        except Exception as error:
            if _fault(error) is not Fault.DUPLICATE:
                raise
            inserted = 0
        return Claimed(spent_at=now) if inserted == 1 else self._why_not(claim)

    def _why_not(self, claim: Claim) -> Answer:
        row = self._look(claim.nonce)
        spent = _spent(row)
        if spent is not None:
            return Claimed(spent_at=spent.spent_at) if spent.claim_id == claim.claim_id else spent
        predates = _predates(row, claim.issued_at)
        if predates is not None:
            return predates
        if row.pruned_until >= microseconds(claim.expires_at):
            return Forgotten(expired_by=instant_of(row.pruned_until))
        raise LedgerUnreachableError(
            "the control database neither took the claim nor shows another; retry shortly"
        )

    def _look(self, nonce: str) -> Row[Any]:
        with self._connected() as connection:
            row = connection.execute(statements.LOOK, {"a_nonce": nonce}).first()
        if row is None:
            raise no_tables("the row that says since when the ledger remembers")
        return row

    def _page(self, start: datetime, end: datetime, after: str) -> list[Row[Any]]:
        question = statements.page_of_claims(microseconds(start), microseconds(end), after, PAGE)
        with self._connected() as connection:
            return list(connection.execute(question))

    def _prune_sometimes(self) -> None:
        with self._lock:
            self._claims += 1
            due = self._claims % self._prune_every == 0
        if due:
            try:
                self.prune()
            except LedgerError as error:  # a claim that succeeded does not fail for it
                _log.warning("ledger_prune_failed", error=type(error).__name__)


def _fault(error: Exception) -> Fault:
    """Return what the error means; one of ours is final but for an unexplained claim."""
    if isinstance(error, LedgerUnreachableError):
        return Fault.LOST
    return Fault.TABLES if isinstance(error, LedgerError) else fault_of(error)


def _spent(row: Row[Any]) -> AlreadySpent | None:
    if row.claim_id is None:
        return None
    return AlreadySpent(spent_at=instant_of(row.spent_at), claim_id=row.claim_id)


def _predates(row: Row[Any], issued_at: datetime) -> PredatesLedger | None:
    if row.created_at <= microseconds(issued_at):
        return None
    return PredatesLedger(created_at=instant_of(row.created_at))


def _spent_nonce(row: Row[Any]) -> SpentNonce:
    return SpentNonce(
        nonce=row.nonce,
        claim_id=row.claim_id,
        spent_at=instant_of(row.spent_at),
        expires_at=instant_of(row.expires_at),
        tool=row.tool,
    )
