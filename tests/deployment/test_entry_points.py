"""What the containers run: the images' own commands, with the environment of docker-compose.yml."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from tests.deployment import compose
from tests.deployment.secure_cluster import SecureCluster
from tests.deployment.test_images import stages
from tests.support.processes import wait_until
from tests.support.services import dsn

from approvaltrail.local.broker.ports import free_ports
from approvaltrail.local.engine import EngineProcess
from approvaltrail.store.connection import open_store
from approvaltrail.store.migrations import check_migrated, migrate

START_SECONDS = 60.0


def command(service: str) -> list[str]:
    """Return what a service runs, by this environment's Python."""
    described = compose.services()[service]
    target = described["build"]["target"]
    image = json.loads(stages()[target].all("ENTRYPOINT")[0])
    given = described.get("entrypoint", [*image, *described.get("command", [])])
    assert given[0] == f"/{target}/bin/python"
    return [sys.executable, *given[1:]]


def health_check(service: str, port: int) -> list[str]:
    """Return a service's health check, for the port that it has here."""
    test = compose.services()[service]["healthcheck"]["test"]
    assert test[0] == "CMD"
    script = test[3].replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    return [sys.executable, test[2], script.replace("127.0.0.1:8501", f"127.0.0.1:{port}")]


def store_environment(database: str, folder: Path) -> dict[str, str]:
    """Name the store without its password, which stands in a file as in the containers."""
    parts = urlsplit(database)
    password = folder / "clickhouse.password"
    password.write_text(unquote(parts.password or ""))
    place = parts._replace(netloc=f"{parts.username}@{parts.hostname}:{parts.port}").geturl()
    return {"CLICKHOUSE_DSN": place, "CLICKHOUSE_PASSWORD_FILE": str(password)}


@contextmanager
def started(arguments: list[str], environment: dict[str, str], log: Path) -> Iterator[Any]:
    """Run a program; end it with SIGTERM, as a container engine does."""
    with log.open("w") as output:
        process = subprocess.Popen(
            arguments, env=environment, stdout=output, stderr=subprocess.STDOUT, cwd=log.parent
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def healthy(service: str, port: int) -> bool:
    done = subprocess.run(health_check(service, port), capture_output=True, timeout=10, check=False)
    return done.returncode == 0


def base_environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(folder)}


def test_the_migration_job_makes_topics_and_tables(
    secure: SecureCluster, database: str, tmp_path: Path
) -> None:
    """The job ends well, twice, with the user `migrate`, and leaves tables that a sink accepts."""
    environment = base_environment(tmp_path) | secure.environment(
        "migrate", **store_environment(database, tmp_path)
    )
    for _ in range(2):
        done = subprocess.run(
            command("migrate"),
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    with open_store(database) as store:
        check_migrated(store)


def test_the_sink_starts_is_healthy_and_stops(
    secure: SecureCluster, database: str, tmp_path: Path
) -> None:
    """The sink's health check passes once it works, and SIGTERM ends it with exit code 0."""
    with open_store(database) as store:
        migrate(store)
    (port,) = free_ports(1)
    environment = base_environment(tmp_path) | secure.environment(
        "sink", APPROVALTRAIL_HEALTH_PORT=str(port), **store_environment(database, tmp_path)
    )
    assert environment["APPROVALTRAIL_HEALTH_HOST"] == "0.0.0.0"
    log = tmp_path / "sink.log"
    with started(command("sink"), environment, log) as process:
        wait_until(
            lambda: process.poll() is not None or healthy("sink", port),
            "the sink is healthy",
            START_SECONDS,
        )
        assert process.poll() is None, log.read_text()[-2000:]
    assert process.returncode == 0, log.read_text()[-2000:]


def test_the_dashboard_starts_and_is_healthy(
    engine: EngineProcess, database: str, tmp_path: Path
) -> None:
    """The dashboard's health check passes, with the user who may only read."""
    with open_store(database) as store:
        migrate(store)
    address = engine.address
    name = urlsplit(database).path.removeprefix("/")
    reader = dsn(address.url, address.reader_user, address.reader_password, name)
    (port,) = free_ports(1)
    environment = (
        base_environment(tmp_path)
        | compose.environment("dashboard")
        | store_environment(reader, tmp_path)
        | {"HOME": str(tmp_path)}
    )
    log = tmp_path / "dashboard.log"
    arguments = [*command("dashboard"), "--port", str(port)]
    with started(arguments, environment, log) as process:
        wait_until(
            lambda: process.poll() is not None or healthy("dashboard", port),
            "the dashboard is healthy",
            START_SECONDS,
        )
        assert process.poll() is None, log.read_text()[-2000:]


@pytest.mark.parametrize("service", ["sink", "dashboard"])
def test_a_health_check_fails_where_nothing_answers(service: str) -> None:
    """A health check says so when the service is not there."""
    (port,) = free_ports(1)
    assert not healthy(service, port)
