"""The ledger in a shared database: its tables, and that its commit decides."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.gate.common import DELETE, plan, shared_gate
from tests.gate.sql_common import NO_SKEW, WAITS, claim, remote
from tests.gate.sql_servers import SqlDatabase, SqlServer
from tests.gate.wire import AtCommit, wire_to

from approvaltrail.gate import Confirmed, StartupRefusedError
from approvaltrail.gate.errors import LedgerMisconfiguredError
from approvaltrail.gate.ledger import AlreadySpent, Claim, Claimed, PredatesLedger
from approvaltrail.gate.ledger.sql import SqlLedger, migrate_ledger
from approvaltrail.gate.testing import EventLog, ManualClock
from approvaltrail.schemas import Reason
from approvaltrail.schemas.messages import Probe


@pytest.fixture
def ledger(database: SqlDatabase, clock: ManualClock) -> Iterator[SqlLedger]:
    """Give a ledger on a database that has its tables."""
    migrate_ledger(database.dsn, clock=clock, skew=NO_SKEW)
    made = SqlLedger(database.dsn, clock=clock, waits=WAITS)
    yield made
    made.close()


# --- tables


def test_tables_are_made_by_migration_alone(database: SqlDatabase, clock: ManualClock) -> None:
    """G7: without tables a claim fails with the command's name, a start too; nothing is made."""
    ledger = SqlLedger(database.dsn, clock=clock, waits=WAITS)
    for ask in (ledger.prepare, lambda: ledger.claim(claim(clock))):
        with pytest.raises(
            LedgerMisconfiguredError, match="approvaltrail ledger migrate"
        ) as caught:
            ask()
        assert not caught.value.retriable
    assert ledger.probe() is Probe.FAILING
    with pytest.raises(StartupRefusedError, match="approvaltrail ledger migrate"):
        remote(database.dsn, clock)
    assert "created mcp_confirm_nonce" in migrate_ledger(database.dsn, clock=clock, skew=NO_SKEW)
    assert migrate_ledger(database.dsn, clock=clock, skew=NO_SKEW) == ()
    assert isinstance(ledger.claim(claim(clock)), Claimed)
    ledger.close()
    remote(database.dsn, clock).close()


def test_a_ledger_is_younger_than_tokens_of_clocks_ahead(
    database: SqlDatabase, clock: ManualClock
) -> None:
    """X5: a new ledger refuses tokens for the allowed skew longer, as their clock may be ahead."""
    migrate_ledger(database.dsn, clock=clock)
    ledger = SqlLedger(database.dsn, clock=clock, waits=WAITS)
    assert isinstance(ledger.claim(claim(clock)), PredatesLedger)
    clock.advance(seconds=5)
    assert isinstance(ledger.claim(claim(clock)), Claimed)
    ledger.close()


@pytest.mark.parametrize("lost", ["mcp_confirm_nonce", "mcp_confirm_ledger", "both"])
def test_tables_made_anew_under_a_running_server_reopen_nothing(
    database: SqlDatabase, ledger: SqlLedger, clock: ManualClock, lost: str
) -> None:
    """X5: whichever table was lost and made anew, tokens of before are refused at once."""
    spent = claim(clock)
    assert isinstance(ledger.claim(spent), Claimed)
    names = ("mcp_confirm_nonce", "mcp_confirm_ledger") if lost == "both" else (lost,)
    database.run(*(f"DROP TABLE {name}" for name in names))
    with pytest.raises(LedgerMisconfiguredError, match="migrate"):
        ledger.claim(claim(clock, "n2"))
    clock.advance(seconds=1)
    assert migrate_ledger(database.dsn, clock=clock, skew=NO_SKEW)
    answer = ledger.claim(Claim(**{**_values(spent), "claim_id": "again"}))
    assert isinstance(answer, AlreadySpent if lost == "mcp_confirm_ledger" else PredatesLedger)
    assert isinstance(ledger.claim(claim(clock, "n3")), Claimed)


def _values(made: Claim) -> dict[str, Any]:
    return {name: getattr(made, name) for name in Claim.__slots__}


def test_a_restored_backup_is_begun_anew(
    database: SqlDatabase, ledger: SqlLedger, clock: ManualClock
) -> None:
    """X5: after rows were lost the operator says so, and tokens of before are refused."""
    spent = claim(clock)
    ledger.claim(spent)
    database.run("DELETE FROM mcp_confirm_nonce")
    clock.advance(seconds=1)
    assert migrate_ledger(database.dsn, clock=clock, skew=NO_SKEW, anew=True) == (
        "began the ledger's memory",
    )
    assert isinstance(ledger.claim(spent), PredatesLedger)


def test_a_table_without_our_key_is_refused(database: SqlDatabase, ledger: SqlLedger) -> None:
    """G7: where the table has no primary key on the nonce, nothing could ever be a replay."""
    dropped = (
        "DROP PRIMARY KEY"
        if database.server.family == "mysql"
        else "DROP CONSTRAINT mcp_confirm_nonce_pkey"
    )
    database.run(f"ALTER TABLE mcp_confirm_nonce {dropped}")
    with pytest.raises(LedgerMisconfiguredError, match="primary key"):
        ledger.prepare()


def test_tables_of_another_version_are_left_alone(database: SqlDatabase, ledger: SqlLedger) -> None:
    """A newer release's tables are neither claimed in nor changed."""
    database.run("UPDATE mcp_confirm_ledger SET version = 99")
    with pytest.raises(LedgerMisconfiguredError, match="version 99"):
        ledger.prepare()
    with pytest.raises(LedgerMisconfiguredError, match="version 99"):
        migrate_ledger(database.dsn, anew=True)


def test_a_table_without_transactions_is_refused(mysql: SqlServer, clock: ManualClock) -> None:
    """G-17: an engine that commits nothing and rolls back nothing is named."""
    database = mysql.fresh()
    migrate_ledger(database.dsn, clock=clock, skew=NO_SKEW)
    database.run("ALTER TABLE mcp_confirm_nonce ENGINE = MyISAM")
    with pytest.raises(StartupRefusedError, match="MyISAM"):
        remote(database.dsn, clock)
    mysql.drop(database)


# --- the commit decides


def test_a_duplicate_that_only_the_commit_shows_is_a_replay(
    postgresql: SqlServer, clock: ManualClock
) -> None:
    """G-16: an INSERT that is let in and whose COMMIT raises a duplicate key spends nothing."""
    database = postgresql.fresh()
    migrate_ledger(database.dsn, clock=clock, skew=NO_SKEW)
    database.run(
        "ALTER TABLE mcp_confirm_nonce DROP CONSTRAINT mcp_confirm_nonce_pkey, "
        "ADD CONSTRAINT mcp_confirm_nonce_pkey PRIMARY KEY (nonce) DEFERRABLE INITIALLY DEFERRED"
    )
    executed: list[Any] = []
    gate = shared_gate(EventLog(), SqlLedger(database.dsn, clock=clock, waits=WAITS), clock)
    token = gate.preflight_sync(DELETE, plan()).token
    assert isinstance(gate.confirm_sync(DELETE, plan(), token, executed.append), Confirmed)
    assert gate.confirm_sync(DELETE, plan(), token, executed.append).code is Reason.ALREADY_USED
    assert len(executed) == 1
    gate.close()
    postgresql.drop(database)


def test_an_optimistic_commit_that_lost_the_race_is_a_replay(
    mysql: SqlServer, clock: ManualClock
) -> None:
    """G-16: MySQL's duplicate key in answer to a COMMIT, as TiDB gives it, is a replay."""
    database = mysql.fresh()
    migrate_ledger(database.dsn, clock=clock, skew=NO_SKEW)
    other, events, executed = SqlLedger(database.dsn, clock=clock, waits=WAITS), EventLog(), []
    with wire_to(mysql.port) as wire:
        ledger = SqlLedger(database.dsn_by(wire.port), clock=clock, waits=WAITS)
        gate = shared_gate(events, ledger, clock)
        token = gate.preflight_sync(DELETE, plan()).token
        theirs = claim(clock, events[0].nonce, "0190f8b2-0000-7000-8000-000000000001")
        wire.break_commits(AtCommit.DUPLICATE, then=lambda: other.claim(theirs))
        refused = gate.confirm_sync(DELETE, plan(), token, executed.append)
        gate.close()
    assert (refused.code, executed) == (Reason.ALREADY_USED, [])
    assert events[-1].spent_claim_id == theirs.claim_id
    other.close()
    mysql.drop(database)


@pytest.mark.parametrize(
    "index", ["CREATE UNIQUE INDEX theirs ON mcp_confirm_nonce (tool)"], ids=["foreign key"]
)
def test_a_duplicate_of_another_key_is_no_replay(
    database: SqlDatabase, ledger: SqlLedger, clock: ManualClock, index: str
) -> None:
    """S3: only our own key's duplicate says that a nonce is spent; another one refuses."""
    database.run(index)
    assert isinstance(ledger.claim(claim(clock)), Claimed)
    with pytest.raises(Exception, match="failed") as caught:
        ledger.claim(claim(clock, "n2", "c2"))
    assert type(caught.value).__name__ == "LedgerUnavailableError"
    assert ledger.is_spent("n2", clock.now()) is None


# --- processes


def test_a_forked_child_opens_connections_of_its_own(ledger: SqlLedger, clock: ManualClock) -> None:
    """S2: a child of fork claims by itself, and leaves its parent's connections alone."""
    ledger.claim(claim(clock))
    parents = session_of(ledger)
    assert session_of(ledger) == parents
    child = os.fork()
    if child == 0:
        apart = session_of(ledger) != parents
        seen = isinstance(ledger.claim(claim(clock, claim_id="child")), AlreadySpent)
        won = isinstance(ledger.claim(claim(clock, "n2", "child")), Claimed)
        os._exit(0 if apart and seen and won else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert isinstance(ledger.claim(claim(clock, "n2")), AlreadySpent)
    assert session_of(ledger) == parents


def session_of(ledger: SqlLedger) -> int:
    """Return the server's number of the session that the ledger uses now."""
    with ledger._connected() as connection:
        mysql = connection.dialect.name in {"mysql", "mariadb"}
        question = "SELECT CONNECTION_ID()" if mysql else "SELECT pg_backend_pid()"
        return int(connection.exec_driver_sql(question).scalar_one())


def test_a_connection_in_doubt_is_not_used_again(ledger: SqlLedger) -> None:
    """G-16: after an error that no server reported, its connection is given up."""
    before = session_of(ledger)
    with pytest.raises(RuntimeError), ledger._connected():
        raise RuntimeError("in the middle of an answer")
    assert session_of(ledger) != before


# --- pruning


def test_a_pruner_whose_clock_is_ahead_drops_nothing_early(
    database: SqlDatabase, ledger: SqlLedger, clock: ManualClock
) -> None:
    """G-14: the database's own time bounds the pruner's."""
    from approvaltrail.gate import SystemClock

    real = SystemClock()
    migrate_ledger(database.dsn, clock=real, skew=NO_SKEW, anew=True)
    ahead = ManualClock(real.now())
    pruner = SqlLedger(database.dsn, clock=ahead, waits=WAITS)
    spent = claim(ahead)
    assert isinstance(pruner.claim(spent), Claimed)
    ahead.advance(hours=1)
    assert pruner.prune() == 0
    assert isinstance(pruner.is_spent("n1", spent.issued_at), AlreadySpent)
    pruner.close()
