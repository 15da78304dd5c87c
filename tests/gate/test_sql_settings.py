"""What a control database must be set to, and what its DSN may say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.gate.certificates import make_certificates
from tests.gate.common import DELETE, plan, shared_gate
from tests.gate.sql_common import NO_SKEW, WAITS, claim, remote
from tests.gate.sql_servers import QUOTED, SqlDatabase, SqlServer

from approvaltrail.gate import Confirmed, StartupRefusedError
from approvaltrail.gate.errors import LedgerMisconfiguredError, LedgerUnreachableError
from approvaltrail.gate.ledger import Scope
from approvaltrail.gate.ledger.dsn import Family, read_dsn
from approvaltrail.gate.ledger.sql import SqlLedger, migrate_ledger
from approvaltrail.gate.ledger.sql_engine import Waits, _prepare_mysql
from approvaltrail.gate.testing import EventLog, ManualClock
from approvaltrail.schemas import Reason

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
        session = "SELECT @@autocommit, @@sql_mode, @@tx_isolation, @@tx_read_only"
        assert _found(database, clock, session) == (
            0,
            "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION",
            "REPEATABLE-READ",
            0,
        )
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
    assert _found(database, clock, "SHOW synchronous_commit") == ("on",)
    postgresql.drop(database)


def _found(database: SqlDatabase, clock: ManualClock, question: str) -> tuple[Any, ...]:
    """Return what a ledger's own session answers."""
    ledger = SqlLedger(database.dsn, clock=clock, waits=WAITS)
    try:
        with ledger._connected() as connection:
            return tuple(connection.exec_driver_sql(question).one())
    finally:
        ledger.close()


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


def encrypted(ledger: SqlLedger) -> bool:
    """Say whether the server sees the ledger's session as encrypted."""
    with ledger._connected() as connection:
        if connection.dialect.name in {"mysql", "mariadb"}:
            row = connection.exec_driver_sql("SHOW SESSION STATUS LIKE 'Ssl_cipher'").one()
            return bool(row[1])
        question = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        return bool(connection.exec_driver_sql(question).scalar_one())


def test_tls_is_as_the_dsn_says(database: SqlDatabase, clock: ManualClock, tmp_path: Path) -> None:
    """CONTROL_DSN asks for TLS and for what is verified, in libpq's or in MySQL's naming."""
    migrate_ledger(database.dsn, clock=clock, skew=NO_SKEW)
    authority = database.server.authority
    make_certificates(tmp_path)
    for query, wanted in (
        ("", True),  # offered, and so taken
        ("?sslmode=disable", False),
        ("?sslmode=require", True),
        (f"?sslmode=verify-full&sslrootcert={authority}", True),
        (f"?ssl_ca={authority}&ssl_verify_cert=true&ssl_verify_identity=true", True),
    ):
        ledger = SqlLedger(database.dsn + query, clock=clock, waits=WAITS)
        assert encrypted(ledger) is wanted
        ledger.close()
    for query in ("?sslmode=verify-full", f"?sslmode=verify-ca&sslrootcert={tmp_path}/ca.pem"):
        ledger = SqlLedger(database.dsn + query, clock=clock, waits=WAITS)
        with pytest.raises(LedgerMisconfiguredError, match="certificate that does not verify"):
            ledger.prepare()
        ledger.close()
    wrong = {"sslmode=maybe": "sslmode", "sslmode=require&sslrootcert=/no/file": "cannot be read"}
    for query, words in wrong.items():
        with pytest.raises(LedgerMisconfiguredError, match=words):
            SqlLedger(f"{database.dsn}?{query}", clock=clock)
        with pytest.raises(StartupRefusedError, match=words):
            remote(f"{database.dsn}?{query}", clock)


def test_a_database_that_is_down_does_not_stop_a_start(clock: ManualClock) -> None:
    """B4: a start refuses for what retrying cannot fix; an outage locks the ledgered tools."""
    gate = remote("mysql://user:hidden@127.0.0.1:1/db", clock)
    assert gate.ledger.scope is Scope.CLUSTER
    with pytest.raises(LedgerUnreachableError) as caught:
        gate.ledger.prepare()
    assert caught.value.retriable
    assert "hidden" not in str(caught.value)


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
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    first, second = done.stdout.splitlines()
    assert first.startswith("LedgerMisconfiguredError")
    assert f"needs {missing}" in first
    assert "approvaltrail-gate[sql]" in first
    if missing == "sqlalchemy":
        assert second.startswith("ImportError")
        assert "approvaltrail-gate[sql]" in second
