"""Makes a SQL ledger's tables: `approvaltrail ledger migrate`."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection, inspect, select

from approvaltrail.gate.clock import Clock, SystemClock
from approvaltrail.gate.ledger.protocol import DEFAULT_RETENTION
from approvaltrail.gate.ledger.sql_engine import DEFAULT_WAITS, Waits, open_engine, server_dsn
from approvaltrail.gate.ledger.sql_faults import meaning
from approvaltrail.gate.ledger.sql_tables import LEDGER, NONCES, VERSION, check_version
from approvaltrail.schemas.encoding import microseconds


def migrate_ledger(
    dsn: str,
    *,
    clock: Clock | None = None,
    skew: timedelta = DEFAULT_RETENTION.skew,
    anew: bool = False,
    waits: Waits = DEFAULT_WAITS,
) -> tuple[str, ...]:
    """Make the ledger's tables where they are missing and return what was done.

    A new ledger refuses tokens that were issued before it was made, and for `skew` longer, since
    the clocks of those who issue may be ahead of this one.

    Args:
        dsn: the control database; its user must be allowed to create tables.
        clock: whose time the ledger's memory begins at.
        skew: how far the clocks of two instances may differ.
        anew: the ledger's memory begins now even where the tables stand, as it must after a
            restored backup or rows that were deleted by hand.
        waits: the bounds.

    Raises:
        LedgerMisconfiguredError: the DSN names no SQL ledger, or its user lacks rights.
        LedgerUnavailableError: the database cannot be reached.
    """
    engine = open_engine(server_dsn(dsn), waits)
    try:
        with engine.connect() as connection:
            return _create_tables(connection, clock=clock, skew=skew, anew=anew)
    except Exception as error:
        raise meaning(error) from error
    finally:
        engine.dispose()


def _create_tables(
    connection: Connection, *, clock: Clock | None, skew: timedelta, anew: bool
) -> tuple[str, ...]:
    """Make what is missing and return what was done.

    Whenever the table of nonces is new, the ledger's memory begins now, whatever the other table
    says of an older one. The row that says so goes first and comes last: an interrupted run leaves
    a ledger that refuses, never one that remembers more than its nonces.
    """
    done = []
    known = set(inspect(connection).get_table_names())
    if LEDGER.name in known:
        check_version(connection)
        if anew or NONCES.name not in known:
            connection.execute(LEDGER.delete())
            connection.commit()
    for table in (NONCES, LEDGER):
        if table.name not in known:
            table.create(connection, checkfirst=True)
            done.append(f"created {table.name}")
    if connection.execute(select(LEDGER.c.one)).first() is None:
        begins = microseconds((clock or SystemClock()).now() + skew)
        row = {"one": 1, "version": VERSION, "created_at": begins, "pruned_until": 0}
        connection.execute(LEDGER.insert().values(row))
        done.append("began the ledger's memory")
    connection.commit()
    return tuple(done)
