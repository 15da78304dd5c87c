"""Who may do what with the engine, and what it never tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import clickhouse_connect
import httpx
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickhouse_connect.driver import Client

    from approvaltrail.local.engine import EngineProcess


@pytest.fixture
def owner(database: str) -> Client:
    """Give a client that may write, on a database with one table of one row."""
    client = clickhouse_connect.get_client(dsn=database, autogenerate_session_id=False)
    client.command("CREATE TABLE facts (a Int32) ENGINE = MergeTree ORDER BY a")
    client.command("INSERT INTO facts VALUES (1)")
    return client


@pytest.fixture
def reader(owner: Client, reader_database: str) -> Iterator[Client]:
    """Give a client that may only read, on the same database."""
    client = clickhouse_connect.get_client(dsn=reader_database, autogenerate_session_id=False)
    yield client
    client.close()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Give a file that nobody may read through the engine."""
    path = tmp_path / "secret.txt"
    path.write_text("TOPSECRET\n")
    return path


def test_the_reader_reads(reader: Client) -> None:
    """The reading user sees tables, with parameters and settings, joins and functions."""
    rows = reader.query(
        "WITH {least:Int32} AS least SELECT a, f.a, 'file(' AS text FROM facts AS f "
        "JOIN numbers(5) AS n ON n.number = f.a WHERE a >= least -- file('x')",
        parameters={"least": 1},
        settings={"max_threads": 1},
    )
    assert rows.result_rows == [(1, 1, "file(")]
    assert reader.command("EXISTS TABLE facts") == 1
    assert reader.command("SHOW TABLES") == "facts"
    assert reader.command("EXPLAIN SELECT a FROM facts")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO facts VALUES (2)",
        "INSERT INTO facts SELECT 2",
        "CREATE TABLE mine (a Int32) ENGINE = Memory",
        "CREATE TEMPORARY TABLE mine (a String) ENGINE = File(LineAsString, '{secret}')",
        "DROP TABLE facts",
        "TRUNCATE TABLE facts",
        "ALTER TABLE facts DELETE WHERE 1",
        "OPTIMIZE TABLE facts",
        "SET readonly = 0",
        "SYSTEM FLUSH LOGS",
        "KILL QUERY WHERE 1",
        "SELECT 1 SETTINGS readonly = 0",
        "SELECT 1; DROP TABLE facts",
        "WITH x AS (SELECT 1) INSERT INTO facts SELECT 2",
        "EXPLAIN AST INSERT INTO facts SELECT 2; INSERT INTO facts SELECT 2",
    ],
)
def test_the_reader_cannot_write(
    reader: Client, owner: Client, secret: Path, statement: str
) -> None:
    """Whatever would change anything is refused to the reading user."""
    with pytest.raises(DatabaseError) as caught:
        reader.command(statement.replace("{secret}", str(secret)))
    assert caught.value.code in {62, 164, 497}
    assert owner.command("SELECT groupArray(a) FROM facts") == "[1]"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM file('{secret}', 'LineAsString')",
        "SELECT * FROM `file`('{secret}', 'LineAsString')",
        "SELECT * FROM \"file\" /* ' */ ('{secret}', 'LineAsString')",
        "SELECT /* /* */ ' */ file('{secret}') -- '",
        "SELECT $a$ ' $a$, file('{secret}'), $a$ ' $a$",
        "SELECT * FROM `fi\\x6ce`('{secret}', 'LineAsString')",
        "SELECT FILE('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM default.`{secret}`",
        "SELECT * FROM `default`.'{secret}'",
        "SELECT * FROM `d\\x65fault`.`{secret}`",
        "SELECT * FROM facts WHERE toString(a) IN default.`{secret}`",
        "DESCRIBE TABLE default.`{secret}`",
        "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
        "SELECT * FROM remote('127.0.0.1:1', system.one)",
        "SELECT * FROM merge('default', '.*')",
        "SELECT * FROM sqlite('{secret}', 't')",
        "SELECT * FROM executable('x', 'TSV', 'a String')",
        "SELECT (SELECT any(line) FROM file('{secret}', 'LineAsString'))",
        "SELECT * FROM view(SELECT * FROM file('{secret}', 'LineAsString'))",
        "EXPLAIN SELECT * FROM file('{secret}', 'LineAsString')",
        "SELECT 1 FORMAT Template SETTINGS format_template_resultset = '{secret}'",
        "SELECT 1 FORMAT Protobuf SETTINGS output_format_schema = '{secret}'",
        "SELECT 1 SETTINGS additional_result_filter = 'throwIf(1, file(''{secret}''))'",
        "SELECT 1 SETTINGS dialect = 'prql'",
        "SELECT 'x' INTO OUTFILE '{secret}' TRUNCATE",
        "SELECT 'x' /**/ INTO /**/ OUTFILE '{secret}' APPEND",
    ],
)
def test_the_reader_cannot_leave_the_tables(reader: Client, secret: Path, statement: str) -> None:
    """No spelling lets the reading user read or write a file, or reach the network."""
    with pytest.raises(DatabaseError) as caught:
        reader.command(statement.replace("{secret}", str(secret)))
    assert caught.value.code in {36, 46, 47, 60, 62, 81, 497}, str(caught.value)
    assert secret.read_text() == "TOPSECRET\n"


def test_the_reader_cannot_leave_by_parameters_or_database(
    reader: Client, engine: EngineProcess, secret: Path
) -> None:
    """Identifier parameters, the current database and plain requests open no way to files."""
    for names in ({"d": "default", "t": str(secret)}, {"d": "system", "t": str(secret)}):
        with pytest.raises(DatabaseError) as caught:
            reader.query("SELECT * FROM {d:Identifier}.{t:Identifier}", parameters=names)
        assert caught.value.code == 497
    auth = (engine.address.reader_user, engine.address.reader_password)
    for database in ({"database": "default"}, {}):
        statement = f"SELECT * FROM '{secret}'"
        answer = httpx.post(engine.address.url, params=database, auth=auth, content=statement)
        assert answer.headers["X-ClickHouse-Exception-Code"] in {"497", "60"}
        assert "TOPSECRET" not in answer.text


@pytest.mark.parametrize(
    "name", ["dialect", "format_template_resultset", "additional_result_filter", "format_schema"]
)
def test_the_reader_cannot_leave_by_settings(
    engine: EngineProcess, secret: Path, name: str
) -> None:
    """Settings that name files, hold expressions or change the language are not for readers."""
    auth = (engine.address.reader_user, engine.address.reader_password)
    options = {name: str(secret), "query": "SELECT 1 FORMAT Template"}
    answer = httpx.post(engine.address.url, params=options, auth=auth)
    assert answer.headers["X-ClickHouse-Exception-Code"] == "497"


def test_a_session_of_the_owner_is_closed_to_the_reader(
    engine: EngineProcess, database: str, reader_database: str
) -> None:
    """Temporary tables of the writing user's session are not the reader's, under the same id."""
    owner = clickhouse_connect.get_client(dsn=database, session_id="shared")
    owner.command("CREATE TEMPORARY TABLE private (a Int32)")
    reader = clickhouse_connect.get_client(dsn=reader_database, session_id="shared")
    with pytest.raises(DatabaseError):
        reader.command("SELECT count() FROM private")
    # A GET of the owner's runs where readers run, in a session of the owner's all the same.
    address = engine.address
    options = {"session_id": "shared", "query": "CREATE TEMPORARY TABLE private (a Int32)"}
    httpx.get(address.url, params=options, auth=(address.user, address.password))
    with pytest.raises(DatabaseError):
        reader.command("SELECT count() FROM private")


@pytest.mark.parametrize("user", ["approvaltrail", "reader", "default", ""])
def test_a_wrong_password_is_refused(engine: EngineProcess, user: str) -> None:
    """Every user with a wrong password, and every other user, gets 516 and no hint which."""
    with pytest.raises(Exception, match="Authentication failed") as caught:
        clickhouse_connect.get_client(
            host="127.0.0.1", port=engine.address.port, username=user or "x", password="wrong"
        )
    assert "wrong" not in str(caught.value)
    answer = httpx.post(engine.address.url, auth=(user, ""), content="SELECT 1")
    assert answer.status_code == 403
    assert answer.headers["X-ClickHouse-Exception-Code"] == "516"


def test_a_get_request_only_reads(engine: EngineProcess, owner: Client) -> None:
    """As on a server, a GET cannot change anything, whoever sends it; later POSTs still can."""
    auth = (engine.address.user, engine.address.password)
    statement = f"INSERT INTO {owner.database}.facts VALUES (9)"
    answer = httpx.get(engine.address.url, auth=auth, params={"query": statement})
    assert answer.headers["X-ClickHouse-Exception-Code"] == "164"
    assert httpx.post(engine.address.url, auth=auth, content=statement).is_success


def test_readonly_asked_for_once_holds_once(owner: Client) -> None:
    """A statement sent with `readonly` cannot write, and does not spoil the next one."""
    for level in (2, 1, 2):
        with pytest.raises(DatabaseError) as caught:
            owner.command("INSERT INTO facts VALUES (8)", settings={"readonly": level})
        assert caught.value.code == 164
        assert owner.command("INSERT INTO facts VALUES (7)").written_rows == 1


def test_a_page_with_another_host_name_gets_nothing(engine: EngineProcess) -> None:
    """A request under a foreign Host, as from a rebound name in a browser, is refused."""
    answer = httpx.get(f"{engine.address.url}/metrics", headers={"Host": "evil.example"})
    assert answer.status_code == 400


def test_passwords_lie_in_a_private_file_and_nowhere_else(engine: EngineProcess) -> None:
    """`engine.json` is for its owner's eyes; neither log nor repr nor command line shows a word."""
    address = engine.address
    file = engine.data / "engine.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert engine.data.stat().st_mode & 0o777 == 0o700
    assert json.loads(file.read_text())["password"] == address.password
    assert address.password != address.reader_password
    command = Path(f"/proc/{engine.pid}/cmdline").read_bytes().decode()
    log = (engine.data / "engine.log").read_text()
    for password in (address.password, address.reader_password):
        assert len(password) >= 32
        assert password not in command + log + repr(address)


def test_logs_hold_codes_and_never_rows(engine: EngineProcess, owner: Client) -> None:
    """A failed insert is logged by its code; its rows and its text are not, in JSON lines."""
    with pytest.raises(DatabaseError):
        owner.raw_insert("facts", ["a"], insert_block=b"CANARY-7f3a\n", fmt="CSV")
    text = (engine.data / "engine.log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert any(line["event"] == "statement_failed" and line["code"] == 117 for line in lines)
    assert "CANARY-7f3a" not in text
    assert "facts" not in text
