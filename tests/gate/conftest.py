"""Fixtures of the gate's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.gate.places import KINDS, LedgerPlace
from tests.gate.sql_servers import MissingServerError, SqlDatabase, SqlServer, sql_server
from tests.support.services import missing

from approvaltrail.gate import SqliteLedger
from approvaltrail.gate.pytest_plugin import gate
from approvaltrail.gate.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["gate"]


@pytest.fixture
def clock() -> ManualClock:
    """Give a clock that stands."""
    return ManualClock()


@pytest.fixture
def sqlite_ledger(tmp_path: Path, clock: ManualClock) -> Iterator[SqliteLedger]:
    """Give a SQLite ledger on a fresh file."""
    ledger = SqliteLedger(tmp_path / "store" / "tokens.db", clock=clock)
    yield ledger
    ledger.close()


@pytest.fixture(scope="session")
def mysql() -> Iterator[SqlServer]:
    """Give a running MariaDB."""
    yield from _running("mysql")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[SqlServer]:
    """Give a running PostgreSQL."""
    yield from _running("postgresql")


def _running(family: str) -> Iterator[SqlServer]:
    running = sql_server(family)
    try:
        server = running.__enter__()
    except MissingServerError as error:
        missing(f"the {family} server", error)
    try:
        yield server
    finally:
        running.__exit__(None, None, None)


@pytest.fixture(params=["mysql", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """Give a fresh database on each kind of server, without a ledger's tables."""
    server: SqlServer = request.getfixturevalue(request.param)
    made = server.fresh()
    yield made
    server.drop(made)


@pytest.fixture(params=KINDS)
def place(
    request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path
) -> Iterator[LedgerPlace]:
    """Give a place where a ledger of each kind is kept, its memory beginning now."""
    kind: str = request.param
    if kind in {"memory", "sqlite"}:
        yield LedgerPlace(kind=kind, where=str(tmp_path / "t.db"))
        return
    server: SqlServer = request.getfixturevalue(kind)
    made = server.fresh()
    found = LedgerPlace(kind=kind, where=made.dsn)
    found.migrate(clock)
    yield found
    server.drop(made)
