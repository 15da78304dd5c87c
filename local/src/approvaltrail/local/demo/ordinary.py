"""Ordinary traffic: somebody asks, reads for a while, and confirms; sometimes they do not."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from approvaltrail.local.demo.calling import Calls, Shown
from approvaltrail.local.demo.people import PEOPLE, usual_wish
from approvaltrail.local.demo.world import DemoWorld

_NEVER_CONFIRMED: Final = 0.12
_READING_SECONDS: Final = (0.4, 6.0)
_AT_ONCE: Final = 20


async def ordinary_traffic(
    calls: Calls, world: DemoWorld, chance: random.Random, *, pause_seconds: float
) -> None:
    """Make calls for ever, on average one every `pause_seconds`, at most 20 at once."""
    room = asyncio.Semaphore(_AT_ONCE)
    async with asyncio.TaskGroup() as group:
        while True:
            await room.acquire()
            call = group.create_task(_one(calls, world, chance))
            call.add_done_callback(lambda _: room.release())
            await asyncio.sleep(chance.expovariate(1 / pause_seconds))


async def _one(calls: Calls, world: DemoWorld, chance: random.Random) -> None:
    person = chance.choice(PEOPLE)
    wish = usual_wish(chance, person, world)
    confirms = chance.random() >= _NEVER_CONFIRMED
    reading_seconds = chance.uniform(*_READING_SECONDS)
    answer = await calls.preflight(wish, person)
    if not isinstance(answer, Shown) or not confirms:
        return
    await asyncio.sleep(reading_seconds)
    await calls.confirm(wish, answer.token, person)
