"""Connections to a control database: bounded in number and in time, and set as claims need them.

How a claim commits depends on settings of its session, which a server's or a user's defaults may
decide otherwise. They are set on every new connection and then read back: a proxy between may
answer a `SET` without passing it on.
"""

from __future__ import annotations

import contextlib
import ssl
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import URL, Engine, create_engine, event, make_url

from approvaltrail.gate.errors import LedgerMisconfiguredError
from approvaltrail.gate.ledger.dsn import DRIVERS, ControlDsn, Family, read_dsn


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """The bounds of a SQL ledger."""

    connect_seconds: float = 3.0
    answer_seconds: float = 5.0
    """How long one statement, or the commit, may take."""
    busy_seconds: float = 2.0
    """How long a claim waits for locks and for a free connection, retries included."""
    connections: int = 8
    """How many connections one process holds at most."""
    connection_age_seconds: int = 240
    """Older connections are replaced before a load balancer drops them."""

    def __post_init__(self) -> None:
        bounds = (self.connect_seconds, self.answer_seconds, self.busy_seconds, self.connections)
        if min(bounds) <= 0:
            raise ValueError("every wait and the number of connections must be positive")
        if self.answer_seconds <= self.busy_seconds:
            raise ValueError(
                "answer_seconds must exceed busy_seconds: else a lock that is waited for would "
                "pass for a server that does not answer"
            )


DEFAULT_WAITS: Final = Waits()
_STRICT: Final = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"


def server_dsn(text: str) -> ControlDsn:
    """Return what the DSN names, if that is a database server.

    Raises:
        LedgerMisconfiguredError: it names no SQL ledger.
    """
    dsn = read_dsn(text)
    if dsn.family is Family.SQLITE:
        raise LedgerMisconfiguredError(
            "CONTROL_DSN names a SQLite file, which needs no tables made: use SqliteLedger"
        )
    return dsn


def open_engine(dsn: ControlDsn, waits: Waits) -> Engine:
    """Return a pool of connections; none is opened yet."""
    driver = DRIVERS[dsn.family]
    given = make_url(dsn.text)
    url = URL.create(
        f"{dsn.family.value}+{driver}",
        username=given.username,
        password=given.password,
        host=given.host,
        port=given.port,
        database=given.database,
    )
    engine = create_engine(
        url,
        pool_size=waits.connections,
        max_overflow=0,
        pool_timeout=waits.busy_seconds,
        pool_recycle=waits.connection_age_seconds,
        isolation_level="READ COMMITTED" if driver == "pg8000" else "REPEATABLE READ",
        hide_parameters=True,
        connect_args=_driver_arguments(dsn, waits),
    )
    prepare = _prepare_mysql if dsn.family is Family.MYSQL else _prepare_postgresql

    @event.listens_for(engine, "connect")
    def set_and_verify(connection: Any, _: Any) -> None:
        try:
            with contextlib.closing(connection.cursor()) as cursor:
                prepare(cursor, waits)
            connection.commit()
        except BaseException:
            with contextlib.suppress(Exception):
                connection.close()
            raise

    return engine


def _driver_arguments(dsn: ControlDsn, waits: Waits) -> dict[str, Any]:
    tls = _tls(dsn)
    if dsn.family is Family.POSTGRESQL:
        seconds = max(waits.connect_seconds, waits.answer_seconds)  # pg8000 has one bound for both
        return {"timeout": seconds, "ssl_context": tls, "application_name": "approvaltrail-gate"}
    arguments = {
        "connect_timeout": waits.connect_seconds,
        "read_timeout": waits.answer_seconds,
        "write_timeout": waits.answer_seconds,
        "charset": "utf8mb4",
        "autocommit": False,
    }
    if tls is False:
        return arguments | {"ssl_disabled": True}
    return arguments if tls is None else arguments | {"ssl": tls}


def _tls(dsn: ControlDsn) -> ssl.SSLContext | Literal[False] | None:
    """Return the TLS that the DSN asks for, by libpq's names or by those of MySQL's clients.

    None leaves it to the drivers, which encrypt where the server offers it and verify nothing.
    """
    given = dsn.parameters
    authority = given.get("sslrootcert") or given.get("ssl_ca")
    mode = given.get("sslmode", "")
    if not mode and _is_true(given.get("ssl_verify_identity")):
        mode = "verify-full"
    elif not mode and (_is_true(given.get("ssl_verify_cert")) or authority):
        mode = "verify-ca"
    if mode in {"", "prefer"}:
        return None
    if mode == "disable":
        return False
    if mode not in {"require", "verify-ca", "verify-full"}:
        raise LedgerMisconfiguredError(
            "CONTROL_DSN sets sslmode to what the ledger does not take; it takes disable, prefer, "
            "require, verify-ca and verify-full"
        )
    try:
        context = ssl.create_default_context(cafile=authority)
        if given.get("sslcert"):
            context.load_cert_chain(given["sslcert"], given.get("sslkey"))
    except OSError as error:
        raise LedgerMisconfiguredError(
            f"a certificate or key that CONTROL_DSN names cannot be read ({type(error).__name__})"
        ) from None
    context.check_hostname = mode == "verify-full"
    if mode == "require":
        context.verify_mode = ssl.CERT_NONE
    return context


def _is_true(value: str | None) -> bool:
    return (value or "").lower() in {"1", "true", "yes", "on"}


def _prepare_mysql(cursor: Any, waits: Waits) -> None:
    wanted = {"autocommit": "0", "sql_mode": _STRICT}
    cursor.execute("SELECT VERSION()")
    tidb = "tidb" in str(cursor.fetchone()[0]).lower()
    if tidb:  # an optimistic INSERT lets a duplicate in and shows it only at the commit
        wanted["tidb_txn_mode"] = "pessimistic"
    cursor.execute("SET SESSION TRANSACTION READ WRITE")
    for name, value in wanted.items():
        cursor.execute(f"SET SESSION {name} = %s", (int(value) if value.isdigit() else value,))
    lock_seconds = max(1, round(waits.busy_seconds))
    cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {lock_seconds}")
    for name, value in wanted.items():
        _require(cursor, f"SELECT @@SESSION.{name}", name, {value})
    if not tidb:
        flush = "innodb_flush_log_at_trx_commit"
        _require(cursor, f"SELECT @@GLOBAL.{flush}", flush, {"1", "3"})


def _prepare_postgresql(cursor: Any, waits: Waits) -> None:
    cursor.execute(
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE, "
        "NOT DEFERRABLE"
    )
    milliseconds = {
        "lock_timeout": waits.busy_seconds,
        "statement_timeout": waits.answer_seconds,
        "idle_in_transaction_session_timeout": waits.answer_seconds * 2,
    }
    for name, seconds in milliseconds.items():
        cursor.execute(f"SET SESSION {name} = {max(1, round(seconds * 1_000))}")
    cursor.execute("SHOW synchronous_commit")
    if cursor.fetchone()[0] == "off":
        cursor.execute("SET SESSION synchronous_commit = on")
    durable = {"on", "local", "remote_write", "remote_apply"}
    _require(cursor, "SHOW synchronous_commit", "synchronous_commit", durable)
    _require(cursor, "SHOW fsync", "fsync", {"on"})
    _require(cursor, "SHOW default_transaction_read_only", "default_transaction_read_only", {"off"})


def _require(cursor: Any, question: str, name: str, allowed: set[str]) -> None:
    cursor.execute(question)
    found = str(cursor.fetchone()[0])
    if found.lower() not in {value.lower() for value in allowed}:
        raise LedgerMisconfiguredError(
            f"{name} is {found or 'empty'} on connections to the control database, and claims need "
            f"{' or '.join(sorted(allowed))}: otherwise a nonce could be spent twice; set it there"
        )
