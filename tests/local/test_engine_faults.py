"""The proxy that other tests use to let the engine fail does what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import clickhouse_connect
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError
from tests.support.avro_blocks import TABLE, block, guarded_insert
from tests.support.engine_faults import Close, Delay, ErrorCode, RunThenClose, Status

if TYPE_CHECKING:
    from clickhouse_connect.driver import Client
    from tests.support.engine_faults import Fault, FaultProxy


@pytest.fixture
def client(engine_faults: FaultProxy, database: str) -> Client:
    """Give a client through the proxy, with a table."""
    dsn = engine_faults.through(database)
    client = clickhouse_connect.get_client(
        dsn=dsn, autogenerate_session_id=False, send_receive_timeout=2
    )
    client.command(TABLE)
    return client


@pytest.mark.parametrize(
    ("fault", "error", "code", "rows"),
    [
        (ErrorCode(252), DatabaseError, 252, 0),
        (Status(503), OperationalError, None, 0),
        (Close(), OperationalError, None, 0),
        (Close(reset=False), OperationalError, None, 0),
        (RunThenClose(), OperationalError, None, 10),
        (RunThenClose(reset=False), OperationalError, None, 10),
        (Delay(4), OperationalError, None, 10),
    ],
)
def test_a_fault_looks_to_the_client_as_described(
    client: Client,
    engine_faults: FaultProxy,
    fault: Fault,
    error: type[Exception],
    code: int | None,
    rows: int,
) -> None:
    """Each fault gives the client its error once, ran or did not run, and then all is well."""
    engine_faults.inject(fault, match="INSERT INTO guarded", times=9)
    with pytest.raises(error) as caught:
        client.command(guarded_insert(), data=block(10))
    assert getattr(caught.value, "code", None) == code
    engine_faults.clear()
    assert client.command("SELECT count() FROM guarded") == rows
    assert client.command(guarded_insert(), data=block(10)).written_rows == 10


def test_skip_and_times_choose_the_statement(client: Client, engine_faults: FaultProxy) -> None:
    """A fault can wait for the n-th statement that matches, and is noted with it."""
    engine_faults.inject(ErrorCode(241), match="SELECT 1", skip=1)
    assert client.command("SELECT 1") == 1
    with pytest.raises(DatabaseError):
        client.command("SELECT 1")
    assert client.command("SELECT 1") == 1
    met = [one.fault for one in engine_faults.seen if one.sql == "SELECT 1"]
    assert met == [None, ErrorCode(241), None]


def test_a_compressed_insert_passes_and_matches_by_its_text(
    client: Client, engine_faults: FaultProxy
) -> None:
    """The proxy carries streamed, compressed bodies unharmed and reads the SQL inside of them."""
    columns = ["partition", "position", "text"]
    client.insert("guarded", [[0, 1, "x"]], column_names=columns)
    assert client.command("SELECT text FROM guarded") == "x"
    assert any("INSERT INTO" in one.sql for one in engine_faults.seen)
