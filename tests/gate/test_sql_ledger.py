"""The ledger in a shared database: its tables, its settings, and that its commit decides."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.gate.common import DELETE, SECRET, plan, settings, shared_gate
from tests.gate.sql_servers import QUOTED, SqlDatabase, SqlServer
from tests.gate.wire import AtCommit, wire_to

from approvaltrail.gate import Confirmed, Deployment, Gate, StartupRefusedError
from approvaltrail.gate.errors import LedgerMisconfiguredError, LedgerUnreachableError
from approvaltrail.gate.ledger import AlreadySpent, Claim, Claimed, PredatesLedger, Scope
from approvaltrail.gate.ledger.dsn import Family, read_dsn
from approvaltrail.gate.ledger.sql import SqlLedger, migrate_ledger
from approvaltrail.gate.ledger.sql_engine import Waits, _prepare_mysql
from approvaltrail.gate.testing import EventLog, ManualClock
from approvaltrail.schemas import Reason
from approvaltrail.schemas.messages import Probe

WAITS = Waits(connect_seconds=2, answer_seconds=4, busy_seconds=2, connections=2)
NO_SKEW = timedelta(0)


def claim(clock: ManualClock, nonce: str = "n1", claim_id: str = "c1") -> Claim:
    """Make a claim of a token issued now."""
    now = clock.now()
    return Claim(
        nonce=nonce,
        claim_id=claim_id,
        issued_at=now,
        expires_at=now + timedelta(minutes=10),
        tool=DELETE,
    )


@pytest.fixture
def ledger(database: SqlDatabase, clock: ManualClock) -> Iterator[SqlLedger]:
    """Give a ledger on a database that has its tables."""
    migrate_ledger(database.dsn, clock=clock, skew=NO_SKEW)
    made = SqlLedger(database.dsn, clock=clock, waits=WAITS)
    yield made
    made.close()


def remote(dsn: str, clock: ManualClock) -> Gate:
    """Make the gate of a writable remote."""
    return Gate(
        settings(confirm_secret=SECRET, control_dsn=dsn, deployment=Deployment.REMOTE),
        recorder=EventLog(),
        clock=clock,
    )


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


# --- settings


MYSQL_DEFAULTS = {
    "autocommit": ("0", "1"),
    "sql_mode": ("''", "DEFAULT"),
    "tx_isolation": ("'SERIALIZABLE'", "DEFAULT"),
    "tx_read_only": ("1", "0"),
    "init_connect": ("'SET autocommit=0, sql_mode=\"\"'", "''"),
}


def test_hostile_defaults_of_mysql_are_set_right(mysql: SqlServer, clock: ManualClock) -> None:
    """G-17: with autocommit off, lax modes and read-only by default, one of two confirms wins."""
    database = mysql.fresh()
    migrate_ledger(database.dsn, clock=clock, skew=NO_SKEW)
    try:
        for name, (value, _) in MYSQL_DEFAULTS.items():
            mysql.run(f"SET GLOBAL {name} = {value}")
        _one_of_two_wins(database, clock)
    finally:
        for name, (_, value) in MYSQL_DEFAULTS.items():
            mysql.run(f"SET GLOBAL {name} = {value}")
    mysql.drop(database)


def test_hostile_defaults_of_postgresql_are_set_right(
    postgresql: SqlServer, clock: ManualClock
) -> None:
    """G-17: with read-only, serialisable and unsynchronised by default, one of two wins."""
    database = postgresql.fresh()
    migrate_ledger(database.dsn, clock=clock, skew=NO_SKEW)
    for setting in (
        "default_transaction_read_only = on",
        "default_transaction_isolation = 'serializable'",
        "default_transaction_deferrable = on",
        "synchronous_commit = off",
    ):
        postgresql.run(f"ALTER ROLE {database.name} SET {setting}")
    _one_of_two_wins(database, clock)
    ledger = SqlLedger(database.dsn, clock=clock, waits=WAITS)
    with ledger._connected() as connection:
        found = connection.exec_driver_sql("SHOW synchronous_commit").scalar()
    assert found == "on"
    ledger.close()
    postgresql.drop(database)


def _one_of_two_wins(database: SqlDatabase, clock: ManualClock) -> None:
    """Confirm one token on two gates; the claim of the first is committed when it returns."""
    events, executed = EventLog(), []
    gates = [
        shared_gate(events, SqlLedger(database.dsn, clock=clock, waits=WAITS), clock)
        for _ in range(2)
    ]
    token = gates[0].preflight_sync(DELETE, plan()).token
    answers = [gate.confirm_sync(DELETE, plan(), token, executed.append) for gate in gates]
    assert isinstance(answers[0], Confirmed)
    assert answers[1].code is Reason.ALREADY_USED
    assert len(executed) == 1
    [(rows,)] = database.run("SELECT count(*) FROM mcp_confirm_nonce")
    assert rows == 1
    for gate in gates:
        gate.close()


def test_a_server_that_loses_commits_is_refused_at_start(
    mysql: SqlServer, clock: ManualClock
) -> None:
    """G-17: what a session cannot set is verified, and the start refuses by its name."""
    database = mysql.fresh()
    migrate_ledger(database.dsn, clock=clock, skew=NO_SKEW)
    try:
        mysql.run("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
        with pytest.raises(StartupRefusedError, match="innodb_flush_log_at_trx_commit is 2"):
            remote(database.dsn, clock)
    finally:
        mysql.run("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
    mysql.drop(database)


class TidbCursor:
    """Answers as TiDB does; one that keeps its optimistic default ignores what it is told."""

    def __init__(self, mode: str | None = None) -> None:
        self.said: list[str] = []
        self._mode = mode
        self._answer = ""

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> None:
        """Take a statement."""
        self.said.append(sql % values if values else sql)
        answers = {
            "SELECT VERSION()": "5.7.25-TiDB-v8.5.0",
            "SELECT @@SESSION.autocommit": "0",
            "SELECT @@SESSION.sql_mode": "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION",
            "SELECT @@SESSION.tidb_txn_mode": self._mode or "pessimistic",
        }
        self._answer = answers.get(sql, "")

    def fetchone(self) -> tuple[str]:
        """Return the answer."""
        return (self._answer,)


def test_tidb_is_told_to_be_pessimistic() -> None:
    """G-17: TiDB's transaction mode is set and verified; one that stays optimistic is refused."""
    cursor = TidbCursor()
    _prepare_mysql(cursor, WAITS)
    assert "SET SESSION tidb_txn_mode = pessimistic" in cursor.said
    with pytest.raises(LedgerMisconfiguredError, match="tidb_txn_mode is optimistic"):
        _prepare_mysql(TidbCursor("optimistic"), WAITS)


def test_waits_must_tell_a_lock_from_an_outage() -> None:
    """The bounds are positive, and an answer is waited for longer than a lock."""
    for wrong in ({"answer_seconds": 1, "busy_seconds": 1}, {"connections": 0}):
        with pytest.raises(ValueError, match=r"exceed|positive"):
            Waits(**wrong)  # type: ignore[arg-type]


# --- the DSN


@pytest.mark.parametrize(
    ("dsn", "words"),
    [
        ("redis://host/0", "no ledger for"),
        ("no dsn", "no ledger for"),
        ("sqlite://", "sqlite:///PATH"),
        ("mysql://host/db", "lacks a host, user or database"),
        ("mysql://user:hidden@host", "lacks a host, user or database"),
        ("postgresql://user:hidden@host:port/db", "port is no number"),
        ("mysql://user:hidden@host/db?autocommit=false", "sets autocommit"),
        ("mysql://user:hidden@host/db?init_command=SET+x&charset=u", "charset, init_command"),
        ("postgresql://user:hidden@host/db?options=hidden", "sets options"),
    ],
)
def test_a_dsn_that_decides_what_is_ours_to_decide_is_refused(dsn: str, words: str) -> None:
    """G-17, S-11: such a DSN is refused naming the setting, never repeating a value."""
    with pytest.raises(LedgerMisconfiguredError, match=words) as caught:
        read_dsn(dsn)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["mysql", "mariadb", "tidb", "mysql+pymysql"])
def test_mysql_has_several_names(scheme: str) -> None:
    """MariaDB, MySQL and TiDB are one family, whatever the DSN calls it."""
    assert read_dsn(f"{scheme}://u:p@h:4000/d?ssl_ca=/x").family is Family.MYSQL
    assert read_dsn("postgres://u:p@h/d?sslmode=require").family is Family.POSTGRESQL


def test_a_wrong_password_is_no_outage_and_is_not_shown(
    database: SqlDatabase, clock: ManualClock
) -> None:
    """S-11: a user whom the database refuses is a matter of settings; no password appears."""
    wrong = SqlLedger(database.dsn.replace(QUOTED, "hidden"), clock=clock, waits=WAITS)
    with pytest.raises(LedgerMisconfiguredError, match="refuses this user") as caught:
        wrong.claim(claim(clock))
    shown: BaseException | None = caught.value
    while shown is not None:
        assert "hidden" not in f"{shown} {shown!r} {wrong!r}"
        shown = shown.__cause__ or shown.__context__


def test_a_database_that_is_down_does_not_stop_a_start(clock: ManualClock) -> None:
    """B4: a start refuses for what retrying cannot fix; an outage locks the ledgered tools."""
    gate = remote("mysql://user:hidden@127.0.0.1:1/db", clock)
    assert gate.ledger.scope is Scope.CLUSTER
    with pytest.raises(LedgerUnreachableError) as caught:
        gate.ledger.prepare()
    assert caught.value.retriable
    assert "hidden" not in str(caught.value)


# --- processes


def test_a_forked_child_opens_connections_of_its_own(ledger: SqlLedger, clock: ManualClock) -> None:
    """S2: a child of fork claims by itself, and leaves its parent's connections alone."""
    ledger.claim(claim(clock))
    child = os.fork()
    if child == 0:
        seen = isinstance(ledger.claim(claim(clock, claim_id="child")), AlreadySpent)
        won = isinstance(ledger.claim(claim(clock, "n2", "child")), Claimed)
        os._exit(0 if seen and won else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert isinstance(ledger.claim(claim(clock, "n2")), AlreadySpent)


@pytest.mark.parametrize("missing", ["sqlalchemy", "pymysql"])
def test_without_the_extra_the_error_names_it(missing: str) -> None:
    """The core imports without a database package; a SQL ledger then says what to install."""
    code = f"""
import sys, importlib.abc
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {missing!r}:
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Absent())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == {missing!r} else found(name)
import approvaltrail.gate
from approvaltrail.gate.ledger.dsn import read_dsn
for step in (
    lambda: read_dsn("mysql://u:p@h/d"),
    lambda: __import__("approvaltrail.gate.ledger.sql"),
):
    try:
        step()
        print("imported")
    except Exception as error:
        print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    first, second = done.stdout.splitlines()
    assert first.startswith("LedgerMisconfiguredError")
    assert f"needs {missing}" in first
    assert "approvaltrail-gate[sql]" in first
    if missing == "sqlalchemy":
        assert second.startswith("ImportError")
        assert "approvaltrail-gate[sql]" in second


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
