"""The engine serves an unmodified clickhouse-connect client."""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import ipaddress
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import clickhouse_connect
import httpx
import lz4.frame
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError
from tests.support.avro_blocks import TABLE, block, guarded_insert
from tests.support.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickhouse_connect.driver import Client

    from approvaltrail.local.engine import EngineProcess

COLUMNS = {
    "number": "Int64",
    "id": "UUID",
    "at": "DateTime64(6, 'UTC')",
    "word": "LowCardinality(String)",
    "maybe_word": "LowCardinality(Nullable(String))",
    "maybe": "Nullable(String)",
    "address": "IPv6",
    "fixed": "FixedString(4)",
    "letter": "Enum8('a' = 1, 'b' = 2)",
    "list": "Array(String)",
    "map": "Map(String, UInt32)",
    "price": "Decimal(18, 4)",
}
ROW = [
    1,
    uuid.UUID("11111111-2222-3333-4444-555555555555"),
    dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC),
    "x",
    None,
    "й'\\\t\n",
    ipaddress.ip_address("2001:db8::1"),
    b"abcd",
    "b",
    ["q", "w"],
    {"k": 5},
    decimal.Decimal("1.2500"),
]


@pytest.fixture
def client(database: str) -> Iterator[Client]:
    """Give a client on a fresh database."""
    one = clickhouse_connect.get_client(dsn=database, autogenerate_session_id=False)
    yield one
    one.close()


@pytest.mark.parametrize("compression", [False, True, "lz4", "zstd", "gzip"])
def test_rows_of_every_type_come_back_as_they_went(database: str, compression: Any) -> None:
    """Inserted rows come back unchanged, under every compression the client offers."""
    client = clickhouse_connect.get_client(dsn=database, compress=compression)
    definitions = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    client.command(f"CREATE TABLE kinds ({definitions}) ENGINE = MergeTree ORDER BY number")
    written = client.insert("kinds", [ROW, [2, *ROW[1:]]], column_names=list(COLUMNS)).written_rows
    assert written == 2
    rows = client.query("SELECT * FROM kinds ORDER BY number", tz_mode="aware").result_rows
    assert [list(row) for row in rows] == [ROW, [2, *ROW[1:]]]
    with client.query_row_block_stream("SELECT number, toString(number) FROM numbers(200000)") as s:
        assert sum(len(rows) for rows in s) == 200_000
    client.close()


def test_parameters_bind_on_both_sides(client: Client) -> None:
    """Values reach the statement unharmed, bound by the server or by the client."""
    hostile = "a'\\\tb\n\"`$$ {x:String} -- /*"
    bound = client.query(
        "SELECT {text:String}, {list:Array(Int32)}, {at:DateTime64(6)}, {name:Identifier} "
        "FROM (SELECT 1 AS one)",
        parameters={"text": hostile, "list": [1, 2], "at": ROW[2], "name": "one"},
    )
    assert bound.result_rows[0][:2] == (hostile, [1, 2])
    assert client.query("SELECT %(text)s", parameters={"text": hostile}).result_rows == [(hostile,)]


def test_settings_hold_for_one_statement(client: Client) -> None:
    """A setting sent with a statement is gone for the next one."""
    ask = "SELECT getSetting('max_block_size')"
    usual = client.command(ask)
    assert client.query(ask, settings={"max_block_size": 77}).result_rows == [(77,)]
    assert client.command(ask) == usual


def test_the_database_holds_for_one_statement(client: Client, engine: EngineProcess) -> None:
    """A statement without a database meets `default`, whatever the one before it used."""
    assert str(client.command("SELECT currentDatabase()")).startswith("test_")
    auth = (engine.address.user, engine.address.password)
    answer = httpx.post(engine.address.url, auth=auth, content="SELECT currentDatabase()")
    assert answer.text == "default\n"


def test_formats_and_raw_inserts(client: Client) -> None:
    """Raw queries and inserts speak whatever format they name, compressed or not."""
    client.command("CREATE TABLE raw (a Int32, b Int32) ENGINE = MergeTree ORDER BY a")
    csv = b"7,8\n9,10\n"
    assert client.raw_insert("raw", ["a", "b"], insert_block=csv, fmt="CSV").written_rows == 2
    packed = gzip.compress(csv)
    client.raw_insert("raw", ["a", "b"], insert_block=packed, fmt="CSV", compression="gzip")
    client.command("INSERT INTO raw VALUES (1, 2), (3, 4)")
    client.command("INSERT INTO raw SELECT a + 100, b FROM raw WHERE a = 1")
    assert client.command("SELECT count(), sum(a) FROM raw") == ["7", "137"]
    found = json.loads(client.raw_query("SELECT max(b) AS b FROM raw", fmt="JSON"))
    assert found["data"] == [{"b": 10}]
    assert client.raw_query("SELECT 1 AS x FORMAT CSVWithNames") == b'"x"\n1\n'


def statement_runs(engine: EngineProcess) -> bool:
    """Whether the engine has a statement at work."""
    metrics = httpx.get(f"{engine.address.url}/metrics").text
    return "approvaltrail_engine_statements_running 1.0" in metrics


def test_a_session_keeps_temporary_tables_and_a_busy_one_is_locked(
    engine: EngineProcess, database: str
) -> None:
    """A session is one connection: what it made stays, and two statements at once get 373."""
    clients = [clickhouse_connect.get_client(dsn=database, session_id="one") for _ in range(2)]
    clients[0].command("CREATE TEMPORARY TABLE mine (a Int32)")
    clients[1].command("INSERT INTO mine VALUES (5)")
    assert clients[0].command("SELECT a FROM mine") == 5
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(clients[0].command, "SELECT sleep(1)")
        wait_until(lambda: statement_runs(engine), "the slow statement runs")
        codes = set()
        while not slow.done():
            try:
                clients[1].command("SELECT 1")
            except DatabaseError as error:
                codes.add(error.code)
        slow.result()
    assert codes == {373}


def test_statements_without_a_session_run_beside_each_other(client: Client) -> None:
    """Slow statements do not hold up others."""
    with ThreadPoolExecutor(5) as pool:
        slow = [pool.submit(client.command, "SELECT sleep(1)") for _ in range(4)]
        assert client.command("SELECT 42") == 42
        assert not any(one.done() for one in slow)
        assert [one.result() for one in slow] == [0, 0, 0, 0]


def test_a_guarded_insert_takes_a_sound_block_whole(client: Client) -> None:
    """`INSERT … FROM input(…) … FORMAT Avro` stores the block in the body, compressed or not."""
    client.command(TABLE)
    assert client.command(guarded_insert(), data=block(1000)).written_rows == 1000
    packed = lz4.frame.compress(block(1000, start=1000))
    lz4_body = {"Content-Encoding": "lz4"}
    client.command(guarded_insert(), data=packed, transport_settings=lz4_body)
    found = client.command("SELECT count(), uniqExact(position), max(text) FROM guarded")
    assert found == ["2000", "2000", "row-999"]


def test_a_guarded_insert_refuses_a_broken_block_whole(client: Client) -> None:
    """One foreign fence at the end of a large block, and nothing of the block is stored."""
    client.command(TABLE)
    one_block = {"max_insert_block_size": 1_048_449, "min_insert_block_size_rows": 1_048_449}
    one_block["min_insert_block_size_bytes"] = 268_402_944
    with pytest.raises(DatabaseError) as caught:
        client.command(guarded_insert(), data=block(100_000, broken_at=99_999), settings=one_block)
    assert caught.value.code == 395
    with pytest.raises(DatabaseError):
        client.command(guarded_insert(), data=block(1000)[:-500])
    assert client.command("SELECT count() FROM guarded") == 0


def test_rows_of_an_insert_leave_no_file_behind(client: Client, engine: EngineProcess) -> None:
    """The files that carry rows are private and gone afterwards, whether it went well or not."""
    client.command(TABLE)
    client.command(guarded_insert(), data=block(10))
    with pytest.raises(DatabaseError):
        client.command(guarded_insert("nowhere"), data=block(10))
    incoming = engine.data / "incoming"
    assert list(incoming.iterdir()) == []
    assert incoming.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("statement", "code"),
    [("SELECT * FROM nowhere", 60), ("SELEC 1", 62), ("SELECT 1 SETTINGS nonsense = 1", 115)],
)
def test_errors_carry_the_code_of_clickhouse(client: Client, statement: str, code: int) -> None:
    """A failed statement is a DatabaseError with ClickHouse's own code."""
    with pytest.raises(DatabaseError) as caught:
        client.query(statement)
    assert caught.value.code == code


def test_a_running_query_id_is_not_given_away_twice(client: Client, engine: EngineProcess) -> None:
    """Two statements under one query id do not run at once; the id comes back in the answer."""
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.query, "SELECT sleep(1)", settings={"query_id": "mine"})
        wait_until(lambda: statement_runs(engine), "the slow statement runs")
        codes = set()
        while not slow.done():
            try:
                client.query("SELECT 1", settings={"query_id": "mine"})
            except DatabaseError as error:
                codes.add(error.code)
    assert codes == {216}
    assert slow.result().query_id == "mine"


def test_too_many_statements_at_once_are_refused_as_a_server_does(
    client: Client, engine: EngineProcess
) -> None:
    """Past the limit a statement is refused with code 202, and served again afterwards."""
    auth = (engine.address.user, engine.address.password)

    def one(_: int) -> str | None:
        answer = httpx.post(engine.address.url, auth=auth, content="SELECT sleep(3)", timeout=60)
        return answer.headers.get("X-ClickHouse-Exception-Code")

    with ThreadPoolExecutor(38) as pool:
        codes = list(pool.map(one, range(38)))
    assert set(codes) == {None, "202"}
    assert client.command("SELECT 1") == 1
