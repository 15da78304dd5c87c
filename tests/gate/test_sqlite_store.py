"""The shared single-use store: one SQLite file, closed when in doubt."""

from __future__ import annotations

import os
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.gate.common import DELETE, plan, shared_gate

from approvaltrail.gate import GateSettings, SqliteLedger, TokenStoreError
from approvaltrail.gate.errors import LedgerFullError
from approvaltrail.gate.ledger import AlreadySpent, Claim, Claimed, PredatesLedger
from approvaltrail.gate.testing import EventLog, ManualClock
from approvaltrail.schemas.messages import Probe


def claim(clock: ManualClock, nonce: str = "n1", claim_id: str = "c1", **changes: Any) -> Claim:
    """Make a claim of a token issued now."""
    values = {
        "nonce": nonce,
        "claim_id": claim_id,
        "issued_at": clock.now(),
        "expires_at": clock.now() + timedelta(minutes=10),
        "tool": DELETE,
    }
    return Claim(**(values | changes))  # type: ignore[arg-type]


def test_the_file_is_made_when_first_needed_and_is_private(
    sqlite_ledger: SqliteLedger, clock: ManualClock
) -> None:
    """S1: nothing is made before the first use; then folder and file are their owner's alone."""
    path = sqlite_ledger.path
    assert not path.parent.exists()
    sqlite_ledger.claim(claim(clock))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_path_has_a_default_and_two_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """S1: `~/.approvaltrail/tokens.db`, unless a variable, new or of the origin, says otherwise."""
    for name in ("APPROVALTRAIL_TOKEN_STORE", "SNODO_TOKEN_STORE"):
        monkeypatch.delenv(name, raising=False)
    assert GateSettings().token_store == Path("~/.approvaltrail/tokens.db")
    assert SqliteLedger().path == Path.home() / ".approvaltrail" / "tokens.db"
    monkeypatch.setenv("SNODO_TOKEN_STORE", "/old/tokens.db")
    assert GateSettings().token_store == Path("/old/tokens.db")
    monkeypatch.setenv("APPROVALTRAIL_TOKEN_STORE", "/new/tokens.db")
    assert GateSettings().token_store == Path("/new/tokens.db")


async def test_two_boundaries_share_one_store(tmp_path: Path, clock: ManualClock) -> None:
    """S2: a token burned by the handler is refused by the engine, and by both after a restart."""
    path, events = tmp_path / "t.db", EventLog()
    handler = shared_gate(events, SqliteLedger(path, clock=clock), clock)
    engine = shared_gate(events, SqliteLedger(path, clock=clock), clock)
    issued = await handler.preflight(DELETE, plan())
    for _ in range(3):  # verifying consumes nothing
        assert not hasattr(await engine.verify(DELETE, plan(), issued.token), "code")
    acceptance = await engine.accept(DELETE, plan(), issued.token)
    assert acceptance.plan == plan()
    assert (await handler.confirm(DELETE, plan(), issued.token, print)).code == "already_used"
    assert (await engine.verify(DELETE, plan(), issued.token)).code == "already_used"
    restarted = shared_gate(events, SqliteLedger(path, clock=clock), clock)
    assert (await restarted.confirm(DELETE, plan(), issued.token, print)).code == "already_used"
    assert events.types == ["issued", "accepted", "replayed", "replayed", "replayed"]


def test_a_store_made_anew_refuses_older_tokens(
    sqlite_ledger: SqliteLedger, clock: ManualClock
) -> None:
    """S4, X5: deleting the file is the recovery, and reopens no replay."""
    old = claim(clock)
    sqlite_ledger.claim(old)
    for leftover in sqlite_ledger.path.parent.iterdir():
        leftover.unlink()
    clock.advance(seconds=1)
    assert sqlite_ledger.claim(old) == PredatesLedger(created_at=clock.now())
    assert isinstance(sqlite_ledger.claim(claim(clock, claim_id="c2")), Claimed)


def test_a_file_replaced_under_a_running_process_is_noticed(
    sqlite_ledger: SqliteLedger, clock: ManualClock
) -> None:
    """X5: claims go to the file that the path names, never to one that others cannot see."""
    sqlite_ledger.claim(claim(clock))
    sqlite_ledger.path.rename(sqlite_ledger.path.with_suffix(".old"))
    clock.advance(seconds=1)
    other = SqliteLedger(sqlite_ledger.path, clock=clock)
    other.prepare()
    fresh = claim(clock, "n2")
    assert isinstance(sqlite_ledger.claim(fresh), Claimed)
    assert isinstance(other.is_spent("n2", fresh.issued_at), AlreadySpent)
    other.close()


@pytest.mark.parametrize("kind", ["text", "folder", "foreign"])
def test_what_is_no_store_fails_closed(tmp_path: Path, clock: ManualClock, kind: str) -> None:
    """S4: a file that is no token store raises an error that names it; it is left as it was."""
    path = tmp_path / "t.db"
    if kind == "text":
        path.write_text("no database " * 200)
    elif kind == "folder":
        path.mkdir()
    else:
        foreign = sqlite3.connect(path)
        foreign.execute("CREATE TABLE theirs (a)")
        foreign.execute("PRAGMA user_version = 1")
        foreign.close()
    before = None if kind == "folder" else path.read_bytes()
    ledger = SqliteLedger(path, clock=clock)
    with pytest.raises(TokenStoreError, match=r"t\.db") as caught:
        ledger.claim(claim(clock))
    assert caught.value.retriable
    assert ledger.probe() is Probe.FAILING
    assert before is None or path.read_bytes() == before


def test_a_store_that_another_holds_is_waited_for_and_then_refused(
    tmp_path: Path, clock: ManualClock
) -> None:
    """S4: waiting for another writer is bounded; then the claim is refused and nothing is spent."""
    ledger = SqliteLedger(tmp_path / "t.db", clock=clock, busy_seconds=0.05)
    ledger.prepare()
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TokenStoreError, match="SQLITE_BUSY"):
        ledger.claim(claim(clock))
    other.execute("ROLLBACK")
    assert isinstance(ledger.claim(claim(clock)), Claimed)
    other.close()
    ledger.close()


class Faulty(sqlite3.Connection):
    """A connection that fails once at a step, before or after it was done."""

    fail_at = "COMMIT"
    done = False
    code = sqlite3.SQLITE_IOERR
    armed = True
    other_writer: Claim | None = None

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:  # type: ignore[override]
        """Fail once at the chosen statement of a claim."""
        kind = type(self)
        if kind.armed and sql.startswith(kind.fail_at) and self._claiming:
            kind.armed = False
            if kind.done:
                super().execute(sql, *arguments)
            if kind.other_writer is not None:
                self._let_other_write(kind.other_writer)
            kind_of_error = (
                sqlite3.IntegrityError
                if kind.code & 0xFF == sqlite3.SQLITE_CONSTRAINT
                else sqlite3.OperationalError
            )
            error = kind_of_error("made up")
            error.sqlite_errorcode = kind.code
            raise error
        self._claiming = sql.startswith("INSERT INTO spent") or (
            self._claiming and not sql.startswith("BEGIN")
        )
        return super().execute(sql, *arguments)

    _claiming = False

    def _let_other_write(self, other: Claim) -> None:
        super().execute("ROLLBACK")
        super().execute(
            "INSERT INTO spent_nonces VALUES (?, ?, 0, 9000000000000000, ?)",
            (other.nonce, other.claim_id, other.tool),
        )


def faulty(**values: Any) -> type[Faulty]:
    """Make a class of connections with a fault of its own."""
    return type("Faulty", (Faulty,), values)


def test_a_lost_acknowledgement_is_harmless(tmp_path: Path, clock: ManualClock) -> None:
    """G7: a commit that was done but not acknowledged is recognised as one's own."""
    ledger = SqliteLedger(tmp_path / "t.db", clock=clock, connection_class=faulty(done=True))
    ledger.prepare()
    assert isinstance(ledger.claim(claim(clock)), Claimed)
    assert isinstance(ledger.claim(claim(clock, claim_id="c2")), AlreadySpent)


def test_a_commit_that_was_not_done_is_repeated(tmp_path: Path, clock: ManualClock) -> None:
    """G-16: the claim counts only after its commit, and is asked again under the same id."""
    ledger = SqliteLedger(tmp_path / "t.db", clock=clock, connection_class=faulty())
    assert isinstance(ledger.claim(claim(clock)), Claimed)
    assert isinstance(ledger.claim(claim(clock, claim_id="c2")), AlreadySpent)


def test_a_duplicate_shown_at_commit_is_a_replay(tmp_path: Path, clock: ManualClock) -> None:
    """G-16: a duplicate key that only the commit reports is a replay, not an outage."""
    other = claim(clock, claim_id="other")
    kind = faulty(code=sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, other_writer=other)
    ledger = SqliteLedger(tmp_path / "t.db", clock=clock, connection_class=kind)
    answer = ledger.claim(claim(clock))
    assert isinstance(answer, AlreadySpent)
    assert answer.claim_id == "other"


def test_a_file_replaced_during_a_claim_is_noticed(tmp_path: Path, clock: ManualClock) -> None:
    """X5: a claim that went to a file which the path no longer names counts for nothing."""
    path = tmp_path / "t.db"

    class Replacing(sqlite3.Connection):
        armed = False

        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:  # type: ignore[override]
            """Commit, with another file in the store's place."""
            if sql == "COMMIT" and Replacing.armed:
                Replacing.armed = False
                path.rename(path.with_suffix(".old"))
            return super().execute(sql, *arguments)

    ledger = SqliteLedger(path, clock=clock, connection_class=Replacing)
    ledger.prepare()
    Replacing.armed = True
    with pytest.raises(TokenStoreError, match="replaced"):
        ledger.claim(claim(clock))


@pytest.mark.parametrize(
    "code",
    [
        sqlite3.SQLITE_CONSTRAINT_NOTNULL,
        sqlite3.SQLITE_CONSTRAINT_CHECK,
        sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_BUSY_SNAPSHOT,
    ],
)
def test_only_a_duplicate_key_is_a_replay(tmp_path: Path, clock: ManualClock, code: int) -> None:
    """S3: every other error, an integrity error too, is an outage and spends nothing."""
    kind = faulty(code=code, fail_at="COMMIT")
    ledger = SqliteLedger(tmp_path / "t.db", clock=clock, connection_class=kind)
    with pytest.raises(TokenStoreError):
        ledger.claim(claim(clock))
    assert isinstance(ledger.claim(claim(clock, claim_id="c2")), Claimed)


def test_a_full_disk_has_an_error_of_its_own(tmp_path: Path, clock: ManualClock) -> None:
    """S4: a full disk refuses, saying that space is needed, and spends nothing."""
    kind = faulty(code=sqlite3.SQLITE_FULL)
    ledger = SqliteLedger(tmp_path / "t.db", clock=clock, connection_class=kind)
    with pytest.raises(LedgerFullError, match="space"):
        ledger.claim(claim(clock))


def test_opening_prunes(tmp_path: Path, clock: ManualClock) -> None:
    """S6: what no token can need any more goes when the store is opened, with no scheduler."""
    path = tmp_path / "t.db"
    first = SqliteLedger(path, clock=clock)
    start = clock.now()
    first.claim(claim(clock))
    first.close()
    clock.advance(minutes=12)
    second = SqliteLedger(path, clock=clock)
    assert second.is_spent("n1", start) is None
    assert second.created_at == start


def test_every_so_many_claims_prune(tmp_path: Path, clock: ManualClock) -> None:
    """S6: pruning comes with every N-th claim."""
    ledger = SqliteLedger(tmp_path / "t.db", clock=clock, prune_every=2)
    start = clock.now()
    ledger.claim(claim(clock, "n0"))
    clock.advance(minutes=12)
    ledger.claim(claim(clock, "n1"))
    assert ledger.is_spent("n0", start) is None
    assert ledger.prune() == 0


def test_a_forked_child_claims_in_the_same_store(tmp_path: Path, clock: ManualClock) -> None:
    """S2: a child of fork opens the store itself, even if its parent was claiming at that time."""
    ledger = SqliteLedger(tmp_path / "t.db", clock=clock)
    ledger.claim(claim(clock))
    with ledger._lock:
        child = os.fork()
        if child == 0:
            seen = isinstance(ledger.claim(claim(clock, claim_id="child")), AlreadySpent)
            won = isinstance(ledger.claim(claim(clock, "n2", "child")), Claimed)
            os._exit(0 if seen and won else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert isinstance(ledger.claim(claim(clock, "n2")), AlreadySpent)
