"""A world of a test's own: what is killed in it is nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.chaos.world import World

from approvaltrail.local.broker import BrokerProcess
from approvaltrail.local.engine import EngineProcess

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def world(kafka: BrokerProcess, engine: EngineProcess, tmp_path: Path) -> Iterator[World]:
    """Give topics and tables on the servers that all tests share: these are never killed."""
    made = World(tmp_path, kafka, engine)
    yield made
    made.stop()


@pytest.fixture
def mortal_world(kafka: BrokerProcess, engine: EngineProcess, tmp_path: Path) -> Iterator[World]:
    """Give a world with servers of its own; the shared ones say that such servers can run here."""
    with ExitStack() as stack:
        broker = BrokerProcess(tmp_path / "broker")
        stack.callback(broker.stop)
        own_engine = EngineProcess(tmp_path / "engine")
        stack.callback(own_engine.stop)
        for server in (broker, own_engine):
            server.start()
        broker.wait_ready()
        own_engine.wait_ready()
        made = World(tmp_path, broker, own_engine)
        stack.callback(made.stop)
        yield made
