"""Readiness of declared targets: a silent one is waited for, one that says no is not."""

from __future__ import annotations

import asyncio
import contextlib

from mcp.client.subscriptions import ToolsListChanged
from tests.server.helpers import Local, read_templates, template

from approvaltrail.server.errors import (
    DatabaseRefusedError,
    DatabaseSilentError,
)
from approvaltrail.server.targets import Readiness, Targets


class Scripted:
    """A probe that answers as it is told."""

    def __init__(self, answer: Exception | None = None) -> None:
        self.answer = answer

    async def __call__(self, cluster_id: str) -> None:
        """Answer."""
        if self.answer is not None:
            raise self.answer


async def test_the_discriminator_is_whether_it_answered() -> None:
    """B4: silence may pass; an answer that says no will not, and is not asked again."""
    probe = Scripted(DatabaseSilentError("cold start"))
    targets = Targets(["1"], probe)
    assert await targets.look()
    assert targets.states == {"1": Readiness.SILENT}
    probe.answer = None
    assert await targets.look()
    assert targets.available("1")
    probe.answer = DatabaseRefusedError("no", code=1045)
    await targets.look()
    assert targets.hopeless() == ("1",)
    probe.answer = None
    assert not await targets.look()


async def test_a_silent_target_comes_back() -> None:
    """B5: what fell silent during a call is asked again until it answers, and that is told."""
    targets, told = Targets(["1"], Scripted()), asyncio.Event()

    async def changed() -> None:
        told.set()

    watch = asyncio.create_task(targets.watch(changed, again_seconds=0.01))
    assert targets.silence("1")
    assert not targets.silence("1")
    assert not targets.available("1")
    async with asyncio.timeout(5):
        await told.wait()
    assert targets.available("1")
    watch.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watch


async def test_tools_of_an_unavailable_target_are_off_the_list() -> None:
    """B5: they are not listed, and a call by name says that retrying is pointless."""
    templates = read_templates(template(cluster="404404"), template(name="good_one"))
    async with Local.open(templates=templates) as local:
        names = {tool.name for tool in (await local.client.list_tools()).tools}
        assert "orders_of" not in names
        assert {"good_one", "tidb_delete_cluster"} <= names
        answer = await local.call("orders_of", customer="7")
        assert (answer["code"], answer["retry_safe"]) == ("target_unavailable", False)
        assert "Do not retry" in answer["shown"]


async def test_a_listening_client_is_told() -> None:
    """B5: where the transport has it, clients hear that tools came or went."""
    async with Local.open(templates=read_templates(template())) as local:
        async with local.client.listen(tools_list_changed=True) as events:
            local.application.surface.toolbox.targets.silence(template()["cluster"])
            await local.application.mcp.tools_changed()
            async with asyncio.timeout(5):
                heard = await anext(aiter(events))
        assert isinstance(heard, ToolsListChanged)
        names = {tool.name for tool in (await local.client.list_tools()).tools}
        assert "orders_of" not in names
