"""Fixtures that every test may use."""

from __future__ import annotations

from tests.support.engine_faults import engine_faults
from tests.support.services import database, engine, kafka, reader_database, topic_prefix

__all__ = ["database", "engine", "engine_faults", "kafka", "reader_database", "topic_prefix"]
