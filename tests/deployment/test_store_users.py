"""What each of the deployment's ClickHouse users may do, judged by ClickHouse's own engine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from approvaltrail.store.migrations import migrations

ROOT = Path(__file__).parents[2]
ACCESS_DENIED = "497"
READ_ONLY = "164"
TABLES = ("heartbeats", "seals", "dead_letters", "retired_producers", "nonce_trail", "migrations")
EVENT = (
    "INSERT INTO events (event_id, producer_id, sequence, nonce, nonce_trust, event_type, "
    "occurred_at, recorded_at) SELECT generateUUIDv4(), generateUUIDv4(), 1, 'n', 'verified', "
    "'refused', now64(6), now64(6)"
)
MEND = "ALTER TABLE {view} MODIFY SQL SECURITY DEFINER DEFINER = migrate"
DESTRUCTIVE = (
    "DROP TABLE events",
    "TRUNCATE TABLE events",
    "ALTER TABLE events DELETE WHERE 1",
    "ALTER TABLE events DROP PARTITION 202601",
    "DROP DATABASE approvaltrail",
    "CREATE USER mallory",
    "SYSTEM FLUSH LOGS",
    "SELECT * FROM url('http://127.0.0.1:9/', 'CSV', 'a Int8')",
    "SELECT * FROM file('/etc/hostname', 'LineAsString')",
    "INSERT INTO FUNCTION file('/tmp/out', 'CSV', 'a Int8') SELECT 1",
)


def writing(table: str) -> str:
    return f"INSERT INTO {table} SELECT * FROM {table} WHERE 0"


def run_as(user: str, data: Path, *statements: str) -> dict[str, str]:
    """Run statements as a user, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.deployment.store_as", user, str(data)],
        input=json.dumps(statements),
        capture_output=True,
        text=True,
        timeout=90,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a store as the deployment makes it: the server its database, `migrate` its tables."""
    folder = tmp_path_factory.mktemp("store")
    create = (
        "import clickhouse_connect, sys; clickhouse_connect.get_client(interface='chdb', "
        "path=sys.argv[1]).command('CREATE DATABASE approvaltrail')"
    )
    subprocess.run([sys.executable, "-c", create, str(folder)], check=True, timeout=60)
    assert run_as("migrate", folder, "migrate", "check_migrated") == {
        "migrate": "ok",
        "check_migrated": "ok",
    }
    # in this process the creator is called `default`; on a server it is `migrate`
    mended = run_as("everything", folder, *(MEND.format(view=view) for view in views()))
    assert set(mended.values()) == {"ok"}
    return folder


def views() -> list[str]:
    """Return the names of the materialized views."""
    words = " ".join(step.text for step in migrations()).split("CREATE MATERIALIZED VIEW IF NOT ")
    return [part.split()[1] for part in words[1:]]


def test_the_sink_writes_what_it_received_and_nothing_else(data: Path) -> None:
    """The sink inserts events, heartbeats, seals and dead letters; views fill the other tables."""
    allowed = (EVENT, *map(writing, ("heartbeats", "seals", "dead_letters")), "check_migrated")
    refused = tuple(map(writing, ("retired_producers", "nonce_trail", "migrations")))
    found = run_as("sink", data, *allowed, "every named query", *refused, *DESTRUCTIVE)
    assert {found[one] for one in (*allowed, "every named query")} == {"ok"}, found
    assert {found[one] for one in (*refused, *DESTRUCTIVE)} == {ACCESS_DENIED}, found


def test_a_dashboard_only_reads(data: Path) -> None:
    """The dashboard asks every named query, writes nothing, and changes no setting."""
    settings = ("SET max_execution_time = 0", "SET readonly = 0", "SET max_result_rows = 0")
    refused = (EVENT, *map(writing, TABLES), *DESTRUCTIVE)
    found = run_as("dashboard", data, "every named query", *settings, *refused)
    assert found["every named query"] == "ok"
    assert {found[one] for one in settings} == {READ_ONLY}, found
    assert {found[one] for one in refused} <= {ACCESS_DENIED, READ_ONLY}, found


def test_an_operator_marks_and_retires(data: Path) -> None:
    """An operator marks dead letters as sent again and retires producers; events stay untouched."""
    allowed = (*map(writing, ("dead_letters", "retired_producers")), "every named query")
    refused = (EVENT, *map(writing, ("heartbeats", "seals", "migrations")), *DESTRUCTIVE)
    found = run_as("operator", data, *allowed, *refused)
    assert {found[one] for one in allowed} == {"ok"}, found
    assert {found[one] for one in refused} == {ACCESS_DENIED}, found


def test_the_migration_drops_and_deletes_nothing(data: Path) -> None:
    """Who creates the tables may neither drop a table nor delete what is in one."""
    found = run_as("migrate", data, "migrate", *DESTRUCTIVE)
    assert found.pop("migrate") == "ok"
    assert set(found.values()) == {ACCESS_DENIED}, found
