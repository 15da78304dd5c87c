"""The longest tests come last, so that whatever is wrong in the small is seen first."""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import clickhouse_connect
import pytest
from tests.support.services import dsn

from approvaltrail.local.cli.entry import run
from approvaltrail.local.engine import EngineProcess


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "whole_way: starts every part; runs after all other tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("whole_way") is not None)


@dataclass
class Ran:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def command() -> Callable[..., Ran]:
    """Return what runs a command line in this process."""

    def call(*arguments: str) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(arguments)
        return Ran(int(code), out.getvalue(), err.getvalue())

    return call


@pytest.fixture(autouse=True)
def plain_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No variable of the machine's owner reaches a test, nor does a running `up`."""
    for name in list(os.environ):
        if name.startswith(("APPROVALTRAIL_", "KAFKA_", "CLICKHOUSE_", "CONFIRM_", "CONTROL_")):
            monkeypatch.delenv(name)
    folder = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("APPROVALTRAIL_DATA", str(folder / "nothing-here"))


@pytest.fixture(scope="module")
def module_database(engine: EngineProcess) -> Iterator[tuple[str, str]]:
    """Give a database that a whole file asks: as who may write, and as who may only read."""
    name, address = f"test_{uuid.uuid4().hex[:12]}", engine.address
    client = clickhouse_connect.get_client(
        dsn=dsn(address.url, address.user, address.password, "default"),
        autogenerate_session_id=False,
    )
    client.command(f"CREATE DATABASE {name}")
    yield (
        dsn(address.url, address.user, address.password, name),
        dsn(address.url, address.reader_user, address.reader_password, name),
    )
    client.command(f"DROP DATABASE IF EXISTS {name} SYNC")
    client.close()
