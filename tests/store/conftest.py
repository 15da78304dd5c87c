"""A store in this process: one engine, a fresh database with all tables for each test."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from approvaltrail.store.connection import Store, open_store
from approvaltrail.store.migrations import migrate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def engine_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep this process's engine open, so that it starts once, and return its folder."""
    folder = tmp_path_factory.mktemp("chdb")
    with open_store(f"chdb://{folder}") as keeper:
        keeper.ping()
        yield folder


@pytest.fixture
def empty_dsn(engine_folder: Path) -> Iterator[str]:
    """Make a fresh database without tables and return its DSN."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    with open_store(f"chdb://{engine_folder}") as keeper:
        keeper.command(f"CREATE DATABASE {name}")
        yield f"chdb://{engine_folder}?database={name}"
        keeper.command(f"DROP DATABASE {name} SYNC")


@pytest.fixture
def store(empty_dsn: str) -> Iterator[Store]:
    """Open a store with all tables and nothing in them."""
    with open_store(empty_dsn) as opened:
        migrate(opened)
        yield opened
