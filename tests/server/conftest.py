"""Fixtures of the server's tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.server.helpers import Local

from approvaltrail.server.testing import RunningServer, running_server


@pytest.fixture
async def server() -> AsyncIterator[RunningServer]:
    """Give a server on the loopback: remote, writable, one cluster, two tenants."""
    async with running_server() as running:
        yield running


@pytest.fixture
async def local() -> AsyncIterator[Local]:
    """Give a server in process, as its user's own machine has it."""
    ready: asyncio.Future[Local] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def hold() -> None:  # one task opens and closes: the client's scopes ask for that
        async with Local.open() as opened:
            ready.set_result(opened)
            await done.wait()

    task = asyncio.create_task(hold())
    await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
    yield ready.result() if ready.done() else await task
    done.set()
    await task
