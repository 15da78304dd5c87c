"""How confirmed work ended: done, failed, or nobody knows."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from tests.server.helpers import DELETE, Local

from approvaltrail.server.platform.http import HttpPlatforms
from approvaltrail.server.testing import MemoryPlatforms, World, fake_api
from approvaltrail.server.testing.memory import MemoryPlatform
from approvaltrail.server.testing.running import addresses_at
from approvaltrail.server.testing.world import small_world


class LosesAnswers(httpx.AsyncBaseTransport):
    """Lets every change reach the platform, and its answer reach nobody."""

    def __init__(self, world: World) -> None:
        self._inner = httpx.ASGITransport(app=fake_api(world))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send; lose the answer to a change that was let in."""
        answer = await self._inner.handle_async_request(request)
        if request.method != "GET" and answer.status_code < 400:
            raise httpx.ReadTimeout("lost", request=request)
        return answer


async def test_a_lost_answer_leaves_the_outcome_unknown() -> None:
    """X2: the work may be done; the answer says so, and the record says unknown."""
    world, key = small_world()
    platforms = HttpPlatforms(addresses_at("http://platform.test"), transport=LosesAnswers(world))
    async with Local.open(world=world, key=key, platforms=platforms) as local:
        both = await local.approve()
        answer = await local.call(DELETE, **both)
        assert (answer["code"], answer["nothing_executed"]) == ("outcome_unknown", None)
        assert (answer["retry_safe"], answer["token_spent"]) == (False, True)
        assert answer["next_move"] == "check_then_preflight"
        assert world.performed == [("delete_cluster", "prod-1")]
        accepted, completed = local.recorder.events[1:]
        assert (completed.outcome, completed.acceptance_id) == ("unknown", accepted.event_id)
        assert answer["event_id"] == accepted.event_id


class Changed(MemoryPlatforms):
    """A platform in which something happens when a change is asked for."""

    def __init__(self, world: World, error: BaseException | None) -> None:
        super().__init__(world)
        self.error = error
        self.reached = asyncio.Event()

    def under(self, key: object) -> MemoryPlatform:
        """Return a platform whose deletion does not succeed."""
        platform, outer = super().under(key), self

        async def delete_cluster(cluster_id: str) -> None:
            outer.reached.set()
            if outer.error is not None:
                raise outer.error
            await asyncio.Event().wait()

        platform.delete_cluster = delete_cluster  # type: ignore[method-assign]
        return platform


async def test_an_error_inside_is_a_failure_that_names_nothing() -> None:
    """S-11, S-16: the acceptance stands, the failure is recorded, and no error text gets out."""
    world, key = small_world()
    platforms = Changed(world, KeyError("canary-in-an-error"))
    async with Local.open(world=world, key=key, platforms=platforms) as local:
        answer = await local.call(DELETE, **await local.approve())
        assert (answer["code"], answer["token_spent"]) == ("execution_failed", True)
        assert "canary" not in answer["shown"]
        assert local.recorder.events.types == ["issued", "accepted", "completed"]
        assert local.recorder.events[2].outcome == "failed"


async def test_a_cancelled_call_leaves_the_outcome_unknown() -> None:
    """X2: a client that goes away in the middle of the work leaves a completed event."""
    world, key = small_world()
    platforms = Changed(world, None)
    async with Local.open(world=world, key=key, platforms=platforms) as local:
        both = await local.approve()
        call = asyncio.create_task(local.call(DELETE, **both))
        async with asyncio.timeout(5):
            await platforms.reached.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(5):
            while len(local.recorder.events) < 3:  # noqa: ASYNC110 - a recorder has no event
                await asyncio.sleep(0)
        assert local.recorder.events[2].outcome == "unknown"
        again = await local.call(DELETE, **both)
        assert again["code"] == "already_used"
