"""The real parts, once per test run: Apache Kafka and ClickHouse's engine.

Tests stay apart by name: a topic prefix or a database of their own. A part that cannot run here
skips the test with its reason, and fails it where `CI=true` promises all parts.
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote, urlsplit

import clickhouse_connect
import pytest

from approvaltrail.local.broker import BrokerError, BrokerProcess
from approvaltrail.local.child import ChildError
from approvaltrail.local.engine import EngineError, EngineProcess

if TYPE_CHECKING:
    from collections.abc import Iterator


def missing(part: str, error: Exception) -> NoReturn:
    """Skip, or fail where everything must be there."""
    reason = f"{part} cannot run here: {error}"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Give a running broker with one node: `kafka.bootstrap_servers`."""
    broker = BrokerProcess(tmp_path_factory.mktemp("kafka"))
    try:
        try:
            broker.start().wait_ready()
        except (BrokerError, ChildError) as error:
            missing("the embedded Kafka", error)
        yield broker
    finally:
        broker.stop()


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """Give a running engine process; `engine.address` holds URL, users and passwords."""
    process = EngineProcess(tmp_path_factory.mktemp("engine"))
    try:
        try:
            process.start().wait_ready()
        except (EngineError, ChildError) as error:
            missing("the ClickHouse engine", error)
        yield process
    finally:
        process.stop()


def dsn(url: str, user: str, password: str, database: str) -> str:
    """Return `http://user:password@host:port/database`."""
    return f"http://{quote(user)}:{quote(password)}@{urlsplit(url).netloc}/{database}"


@pytest.fixture
def database(engine: EngineProcess) -> Iterator[str]:
    """Give a fresh database in the engine, as the DSN of the user who may write."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    address = engine.address
    client = clickhouse_connect.get_client(
        dsn=dsn(address.url, address.user, address.password, "default"),
        autogenerate_session_id=False,
    )
    client.command(f"CREATE DATABASE {name}")
    yield dsn(address.url, address.user, address.password, name)
    client.command(f"DROP DATABASE IF EXISTS {name} SYNC")
    client.close()


@pytest.fixture
def reader_database(engine: EngineProcess, database: str) -> str:
    """Give the same database as the DSN of the user who may only read."""
    address = engine.address
    name = urlsplit(database).path.removeprefix("/")
    return dsn(address.url, address.reader_user, address.reader_password, name)


@pytest.fixture
def topic_prefix() -> str:
    """Give a prefix for topics and consumer groups that no other test uses."""
    return f"test-{uuid.uuid4().hex[:12]}-"
