"""The engine's process: health, ends of all kinds, one at a time on a folder."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import clickhouse_connect
import httpx
import pytest
from clickhouse_connect.driver.exceptions import ClickHouseError
from tests.support.avro_blocks import TABLE, block, guarded_insert
from tests.support.processes import is_alive, owner_of, sigkill, wait_until

from approvaltrail.local.engine import (
    EngineAddress,
    EngineFolderInUseError,
    EnginePortTakenError,
    EngineProcess,
    EngineStartError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clickhouse_connect.driver import Client


@pytest.fixture
def own(tmp_path: Path) -> Iterator[EngineProcess]:
    """Give an engine of this test's own, not started."""
    process = EngineProcess(tmp_path / "engine")
    yield process
    process.kill()


def client_of(address: EngineAddress) -> Client:
    """Return a client of the writing user."""
    return clickhouse_connect.get_client(
        host="127.0.0.1",
        port=address.port,
        username=address.user,
        password=address.password,
        autogenerate_session_id=False,
    )


def test_every_acknowledged_row_survives_a_kill(own: EngineProcess) -> None:
    """Killed in the middle of inserts, the engine comes back with all it acknowledged."""
    address = own.start().wait_ready()
    client = client_of(address)
    client.command(TABLE)
    acknowledged: list[int] = []

    def insert() -> None:
        try:
            for start in range(0, 1_000_000, 10):
                client.command(guarded_insert(), data=block(10, start=start))
                acknowledged.append(start)
        except ClickHouseError:
            pass

    thread = threading.Thread(target=insert)
    thread.start()
    wait_until(lambda: len(acknowledged) >= 30, "thirty inserts")
    assert own.pid is not None
    sigkill(own.pid)
    thread.join(30)
    wait_until(lambda: not own.running, "the engine is gone")
    (own.data / "incoming" / "left-behind").write_bytes(b"rows")

    again = own.start().wait_ready()
    assert (again.url, again.password) == (address.url, address.password), "clients find it again"
    rows = client_of(again).query("SELECT DISTINCT position FROM guarded").result_columns[0]
    expected = {start + index for start in acknowledged for index in range(10)}
    assert expected <= set(rows)
    assert list((own.data / "incoming").iterdir()) == [], "swept at start"


def test_stop_is_clean_and_quick_even_while_a_statement_runs(own: EngineProcess) -> None:
    """SIGTERM ends the engine in order at once, whatever runs: the statement is cut off."""
    client = client_of(own.start().wait_ready())
    errors: list[str] = []

    def slow() -> None:
        try:
            client.command("SELECT sleepEachRow(1) FROM numbers(100) SETTINGS max_block_size = 1")
        except ClickHouseError as error:
            errors.append(type(error).__name__)

    thread = threading.Thread(target=slow)
    thread.start()
    url = f"{own.address.url}/metrics"
    running = "approvaltrail_engine_statements_running 1.0"
    wait_until(lambda: running in httpx.get(url).text, "the statement runs")
    own.stop()
    assert "engine_stopped" in own.log_tail()
    thread.join(10)
    assert errors


def test_a_folder_belongs_to_one_engine_at_a_time(engine: EngineProcess) -> None:
    """A second engine on the same folder is refused and says so; the first lives on."""
    second = EngineProcess(engine.data).start()
    with pytest.raises(EngineFolderInUseError, match=r"another engine runs on .*another folder"):
        second.wait_ready()
    assert client_of(engine.wait_ready()).command("SELECT 1") == 1
    command = [sys.executable, "-m", "approvaltrail.local.engine", "--data", str(engine.data)]
    direct = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert direct.returncode == 3
    assert "another engine runs on" in direct.stderr


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    """A port that somebody else listens on is an error that names it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = EngineProcess(tmp_path / "engine", port).start()
        with pytest.raises(EnginePortTakenError, match=rf"port {port} .*another port"):
            process.wait_ready()


def test_an_engine_that_cannot_start_shows_its_log(own: EngineProcess) -> None:
    """A start that fails ends in an error that points to the log and quotes its end."""
    own.data.mkdir()
    (own.data / "store").write_text("not a folder")
    with pytest.raises(EngineStartError, match=r"ended with code .*engine\.log"):
        own.start().wait_ready()


def test_no_engine_outlives_its_owner(tmp_path: Path) -> None:
    """When the process that started the engine is killed by SIGKILL, no engine stays behind."""
    owner, pid = owner_of(
        "from pathlib import Path; from approvaltrail.local.engine import EngineProcess\n"
        f"e = EngineProcess(Path({str(tmp_path / 'engine')!r})).start()\n"
        "e.wait_ready(); print(e.pid, flush=True)"
    )
    assert is_alive(pid)
    owner.kill()
    owner.wait()
    wait_until(lambda: not is_alive(pid), "the engine is gone", 8)


def test_the_terminal_stops_an_engine_in_the_foreground(tmp_path: Path) -> None:
    """Run by hand, the engine ends on Ctrl-C with code 0."""
    command = [sys.executable, "-m", "approvaltrail.local.engine", "--data", str(tmp_path / "e")]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log)
    wait_until(lambda: b"engine_started" in (tmp_path / "log").read_bytes(), "it started")
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(5) == 0


def test_health_and_metrics(engine: EngineProcess, database: str) -> None:
    """Live, ready, and counted: requests, rows written, errors by code, without a password."""
    client = clickhouse_connect.get_client(dsn=database, autogenerate_session_id=False)
    assert client.ping()
    client.command("CREATE TABLE counted (a Int32) ENGINE = MergeTree ORDER BY a")
    before = metric(engine, "approvaltrail_engine_rows_written_total")
    client.insert("counted", [[1], [2], [3]], column_names=["a"])
    assert metric(engine, "approvaltrail_engine_rows_written_total") == before + 3
    with pytest.raises(ClickHouseError):
        client.query("SELECT * FROM nowhere")
    assert metric(engine, 'approvaltrail_engine_errors_total{code="60"}') >= 1
    kind = 'approvaltrail_engine_requests_total{kind="insert",user="approvaltrail"}'
    assert metric(engine, kind) >= 1
    for path in ("/ping", "/healthz", "/readyz"):
        assert httpx.get(engine.address.url + path).status_code == 200


def metric(engine: EngineProcess, name: str) -> float:
    """Read one sample."""
    text = httpx.get(f"{engine.address.url}/metrics").text
    return next(
        float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name + " ")
    )
