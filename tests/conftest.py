"""Fixtures that every test may use, and the order in which the files' tests run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.engine_faults import engine_faults
from tests.support.schema_registry import registry_faults, schema_registry
from tests.support.services import database, engine, kafka, reader_database, topic_prefix
from tests.support.slow_files import slowest_first

if TYPE_CHECKING:
    import pytest

__all__ = [
    "database",
    "engine",
    "engine_faults",
    "kafka",
    "reader_database",
    "registry_faults",
    "schema_registry",
    "topic_prefix",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the slowest files begin first."""
    slowest_first(items)
