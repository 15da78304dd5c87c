"""The shared single-use store: one SQLite file that all processes of a machine claim in."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

import structlog

from approvaltrail.gate.clock import Clock, SystemClock
from approvaltrail.gate.errors import LedgerError, TokenStoreBusyError, TokenStoreError
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
from approvaltrail.gate.ledger.sqlite_file import (
    OpenStore,
    check_unmoved,
    meaning,
    open_store,
    replaced,
)
from approvaltrail.schemas.encoding import instant_of, microseconds
from approvaltrail.schemas.messages import Probe

DEFAULT_PATH: Final = Path("~/.approvaltrail/tokens.db")
BUSY_SECONDS: Final = 2.0
"""How long a claim waits for another writer; then the ledger counts as unavailable."""
PRUNE_EVERY: Final = 256
PRUNED_AT_ONCE: Final = 1_000
_DUPLICATE: Final = frozenset(
    {sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE}
)
"""Extended codes 1555 and 2067; every other error, of whatever class, is no sign of a replay."""
_INSERT: Final = (
    "INSERT INTO spent_nonces (nonce, claim_id, spent_at, expires_at, tool) "
    "SELECT ?1, ?2, ?3, ?4, ?5 FROM store WHERE pruned_until < ?4"
)
"""Inserts nothing where the store may have dropped the claim of this very token."""
_SELECT: Final = "SELECT spent_at, claim_id FROM spent_nonces WHERE nonce = ?"
_PRUNE: Final = (
    "DELETE FROM spent_nonces WHERE nonce IN "
    "(SELECT nonce FROM spent_nonces WHERE expires_at <= ? LIMIT ?)"
)
_MARK: Final = "UPDATE store SET pruned_until = max(pruned_until, ?)"
_CLAIMS: Final = (
    "SELECT nonce, claim_id, spent_at, expires_at, tool FROM spent_nonces "
    "WHERE nonce > ? AND spent_at >= ? AND spent_at < ? ORDER BY nonce LIMIT ?"
)
PAGE: Final = 1_000
_T = TypeVar("_T")
_log = structlog.get_logger(__name__)


class SqliteLedger:
    """Spends nonces in a file that all processes of the machine share.

    The file is made when it is first needed. It fails closed: whatever goes wrong is a
    `TokenStoreError`, and there is no way to skip it. Deleting the file is the recovery; a store
    made anew refuses every token issued before, so that deleting it reopens no replay.

    One connection serves all threads of the process in turn. A forked child opens its own; a file
    that was deleted or replaced is noticed at the next claim.
    """

    scope: Final = Scope.MACHINE
    blocks: Final = True

    def __init__(
        self,
        path: Path | str = DEFAULT_PATH,
        *,
        clock: Clock | None = None,
        retention: Retention = DEFAULT_RETENTION,
        busy_seconds: float = BUSY_SECONDS,
        prune_every: int = PRUNE_EVERY,
        connection_class: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> None:
        self.path = Path(path).expanduser()
        self._clock = clock or SystemClock()
        self._retention = retention
        self._busy_seconds = busy_seconds
        self._prune_every = prune_every
        self._connection_class = connection_class
        self._store: OpenStore | None = None
        self._process = os.getpid()
        self._of_parents: list[OpenStore] = []
        self._lock = threading.Lock()
        self._inserts = 0

    @property
    def created_at(self) -> datetime:
        """When the file was made."""
        return self._guarded(lambda store: store.created_at)

    @property
    def pruned_until(self) -> datetime:
        """The expiry up to which claims were dropped."""
        return self._guarded(lambda store: _pruned_until(store.connection))

    def prepare(self) -> None:
        """Open the file, making it where there is none."""
        self._guarded(lambda _: None)

    def claim(self, claim: Claim) -> Answer:
        """Spend the nonce; see `Ledger.claim`."""

        def spend(store: OpenStore) -> Answer:
            if claim.issued_at < store.created_at:
                return PredatesLedger(created_at=store.created_at)
            answer = self._insert(store.connection, claim)
            if isinstance(answer, Claimed):
                self._prune_sometimes(store.connection)
            return answer

        return self._guarded(spend, attempts=2)

    def is_spent(self, nonce: str, issued_at: datetime) -> AlreadySpent | PredatesLedger | None:
        """Look without spending; see `Ledger.is_spent`."""

        def look(store: OpenStore) -> AlreadySpent | PredatesLedger | None:
            if issued_at < store.created_at:
                return PredatesLedger(created_at=store.created_at)
            return _spent(store.connection, nonce)

        return self._guarded(look)

    def probe(self) -> Probe:
        """Say whether the file can be opened and read now."""
        try:
            self._guarded(lambda store: _spent(store.connection, ""))
        except LedgerError:
            return Probe.FAILING
        return Probe.OK

    def claims(self, start: datetime, end: datetime) -> Iterator[SpentNonce]:
        """Yield the claims spent from `start` (in) to `end` (out)."""
        after, between = "", (microseconds(start), microseconds(end))

        def page(store: OpenStore) -> list[tuple[str, str, int, int, str]]:
            return store.connection.execute(_CLAIMS, (after, *between, PAGE)).fetchall()

        while True:
            rows = self._guarded(page)
            yield from map(_spent_nonce, rows)
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def prune(self) -> int:
        """Drop claims that no token can need any more; return how many went."""
        return self._guarded(lambda store: self._prune(store.connection))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._drop()

    def _guarded(self, work: Callable[[OpenStore], _T], attempts: int = 1) -> _T:
        """Run work on the current file, alone in this process, its errors mapped.

        A claim has two attempts: when an acknowledgement was lost, the second meets the row of the
        first, known by its claim id, and the nonce is not called spent by somebody else.
        """
        with self._held():
            while True:
                attempts -= 1
                try:
                    store = self._current()
                    answer = work(store)
                    check_unmoved(self.path, store)
                except sqlite3.Error as error:
                    self._drop()
                    if attempts < 1 or _certain(error):
                        raise meaning(error, self.path) from error
                except TokenStoreError:
                    self._drop()
                    raise
                else:
                    return answer

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        if self._process != os.getpid():  # forked: the parent's lock and connection are not ours
            if self._store is not None:
                self._of_parents.append(self._store)  # theirs to close
            self._store, self._lock, self._process = None, threading.Lock(), os.getpid()
        lock = self._lock
        if not lock.acquire(timeout=self._busy_seconds):
            raise TokenStoreBusyError(
                f"the token store {self.path} was busy for {self._busy_seconds} s in this process; "
                "retry shortly"
            )
        try:
            yield
        finally:
            lock.release()

    def _current(self) -> OpenStore:
        if self._store is not None and replaced(self.path, self._store):
            _log.error("token_store_replaced", path=str(self.path))
            self._drop()
        if self._store is None:
            self._store = open_store(
                self.path, self._clock.now(), self._busy_seconds, self._connection_class
            )
            self._prune_quietly(self._store.connection)
        return self._store

    def _drop(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            with contextlib.suppress(sqlite3.Error):
                store.connection.close()

    def _insert(self, connection: sqlite3.Connection, claim: Claim) -> Answer:
        now = self._clock.now()
        row = (
            claim.nonce,
            claim.claim_id,
            microseconds(now),
            microseconds(claim.expires_at),
            claim.tool,
        )
        try:
            connection.execute("BEGIN IMMEDIATE")
            inserted = connection.execute(_INSERT, row).rowcount
            connection.execute("COMMIT")
        except sqlite3.IntegrityError as error:
            with _rolled_back(connection):
                spent = _spent(connection, claim.nonce)
            if error.sqlite_errorcode not in _DUPLICATE or spent is None:
                raise
            own = spent.claim_id == claim.claim_id
            return Claimed(spent_at=spent.spent_at) if own else spent
        if inserted != 1:
            spent = _spent(connection, claim.nonce)
            return spent or Forgotten(expired_by=_pruned_until(connection))
        return Claimed(spent_at=now)

    def _prune_sometimes(self, connection: sqlite3.Connection) -> None:
        self._inserts += 1
        if self._inserts % self._prune_every == 0:
            self._prune_quietly(connection)

    def _prune_quietly(self, connection: sqlite3.Connection) -> None:
        """Prune; a claim that succeeded does not fail because cleaning up did."""
        try:
            self._prune(connection)
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                connection.rollback()
            _log.warning("token_store_prune_failed", error=type(error).__name__)

    def _prune(self, connection: sqlite3.Connection) -> int:
        """Drop claims and say how far, in one transaction."""
        droppable = microseconds(self._retention.droppable(self._clock.now()))
        connection.execute("BEGIN IMMEDIATE")
        with _rolled_back(connection):
            dropped = connection.execute(_PRUNE, (droppable, PRUNED_AT_ONCE)).rowcount
            if dropped:
                connection.execute(_MARK, (droppable,))
            connection.execute("COMMIT")
        return dropped


def _spent(connection: sqlite3.Connection, nonce: str) -> AlreadySpent | None:
    rows = connection.execute(_SELECT, (nonce,)).fetchall()
    return AlreadySpent(spent_at=instant_of(rows[0][0]), claim_id=rows[0][1]) if rows else None


def _pruned_until(connection: sqlite3.Connection) -> datetime:
    return instant_of(connection.execute("SELECT pruned_until FROM store").fetchall()[0][0])


def _spent_nonce(row: tuple[str, str, int, int, str]) -> SpentNonce:
    nonce, claim_id, spent_at, expires_at, tool = row
    return SpentNonce(
        nonce=nonce,
        claim_id=claim_id,
        spent_at=instant_of(spent_at),
        expires_at=instant_of(expires_at),
        tool=tool,
    )


@contextlib.contextmanager
def _rolled_back(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _certain(error: sqlite3.Error) -> bool:
    """Say whether the error leaves no doubt that nothing was written, so that asking again is vain.

    Waiting for the lock was already bounded by the busy timeout.
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_CONSTRAINT,
    }
