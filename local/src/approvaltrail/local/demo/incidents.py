"""Scripted incidents: each is a short story that an investigator can read in its trail."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from approvaltrail.local.demo.calling import Calls, DemoCallError, Shown
from approvaltrail.local.demo.people import (
    AGENT,
    ANA,
    BO,
    DEPLOYER,
    KIM,
    LEE,
    REGION,
    Person,
    Wish,
    elsewhere,
)
from approvaltrail.local.demo.world import DemoWorld
from approvaltrail.schemas.token_shape import TOKEN_PREFIX

FORGED_FLOOD: Final = 40
_BASE64URL: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_MAC_LENGTH: Final = 43


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a story needs: calls, the platform's world, chance, and how long tokens live."""

    calls: Calls
    world: DemoWorld
    chance: random.Random
    token_seconds: float

    def on(self, person: Person, tool: str, name: str, **arguments: Any) -> Wish:
        """Wish for something on a cluster of the person's tenant."""
        return Wish(tool, {"clusterId": self.world.cluster(person.tenant, name), **arguments})

    async def issue(self, wish: Wish, person: Person) -> str:
        """Run a preflight and return its token."""
        answer = await self.calls.preflight(wish, person)
        if not isinstance(answer, Shown):
            raise DemoCallError(f"a preflight of the demonstration was not shown: {answer}")
        return answer.token

    async def confirm(self, wish: Wish, token: str | None, person: Person) -> None:
        """Confirm; a refusal or a failed execution is part of the story."""
        await self.calls.confirm(wish, token, person)

    async def spend(self, wish: Wish, person: Person, reading_seconds: float = 0.5) -> str:
        """Run both steps and return the token, which is spent where the tool is ledgered."""
        token = await self.issue(wish, person)
        await asyncio.sleep(reading_seconds)
        await self.confirm(wish, token, person)
        return token


async def lost_answer(stage: Stage) -> None:
    """Let a client lose the answer and send the same call again two seconds later."""
    wish = stage.on(DEPLOYER, "tidb_create_backup", "prod-1", displayName=_label(stage))
    token = await stage.spend(wish, DEPLOYER)
    await asyncio.sleep(2)
    await stage.confirm(wish, token, DEPLOYER)


async def stolen_token(stage: Stage) -> None:
    """Bring a spent token of a deletion back from another address and client."""
    wish = stage.on(ANA, "tidb_delete_cluster", f"prod-{stage.chance.randint(20, 99)}")
    token = await stage.spend(wish, ANA, 1.2)
    await asyncio.sleep(4)
    thief = elsewhere(ANA, address="203.0.113.9", client="curl 8.9")
    for _ in range(4):
        await stage.confirm(wish, token, thief)
        await asyncio.sleep(1.5)


async def other_target(stage: Stage) -> None:
    """Try a spent token on another cluster: refused before the ledger is asked."""
    token = await stage.spend(stage.on(AGENT, "tidb_delete_cluster", "dev-8"), AGENT)
    await asyncio.sleep(1)
    await stage.confirm(stage.on(AGENT, "tidb_delete_cluster", "prod-1"), token, AGENT)


async def other_tenant(stage: Stage) -> None:
    """Another customer presents a spent token for its own cluster of the same name."""
    wish = Wish("tidb_restore_backup", {"backupId": stage.world.backup(KIM.tenant, "prod-7")})
    token = await stage.spend(wish, KIM)
    await asyncio.sleep(1.5)
    theirs = wish.with_arguments(backupId=stage.world.backup(LEE.tenant, "prod-7"))
    await stage.confirm(theirs, token, LEE)


async def second_execute(stage: Stage) -> None:
    """On an unledgered tool the same token is accepted a second time."""
    wish = stage.on(BO, "tidb_execute", "staging-2", database="shop", sql="DELETE FROM carts")
    token = await stage.spend(wish, BO)
    await asyncio.sleep(3)
    await stage.confirm(wish, token, BO)


async def skipped_preflight(stage: Stage) -> None:
    """Confirm at once, without any token, as an agent in a hurry does."""
    wish = stage.on(AGENT, "tidb_execute", "prod-1", database="shop", sql="DROP TABLE orders")
    await stage.confirm(wish, None, AGENT)


async def forged_flood(stage: Stage) -> None:
    """Make tokens up, many in a row; some have a real token's payload."""
    guesser = elsewhere(LEE, address="203.0.113.200", client="x 0")
    wish = stage.on(LEE, "tidb_delete_cluster", "prod-1")
    real = await stage.issue(wish, LEE)
    payload = real.split(".")[1]
    for number in range(FORGED_FLOOD):
        chosen = payload if number % 4 == 0 else _noise(stage, 120)
        forged = f"{TOKEN_PREFIX}.{chosen}.{_noise(stage, _MAC_LENGTH - 1)}A"
        await stage.confirm(wish, forged, guesser)
        await asyncio.sleep(0.02)


async def plan_changed(stage: Stage) -> None:
    """Let a client ask for another instant than the one that was read and approved."""
    name = f"staging-{stage.chance.randint(20, 99)}"
    wish = stage.on(BO, "tidb_restore_cluster", name, pointInTime="2026-03-08T06:00:00Z")
    token = await stage.issue(wish, BO)
    await asyncio.sleep(1)
    await stage.confirm(wish.with_arguments(pointInTime="2026-02-08T06:00:00Z"), token, BO)


async def work_failed(stage: Stage) -> None:
    """Fail after the token is spent, and have the client try the same token again."""
    name = f"dev-{stage.chance.randint(20, 99)}"
    wish = Wish("tidb_create_cluster", {"displayName": name, "region": REGION})
    stage.world.break_next(name)
    token = await stage.spend(wish, KIM)
    await asyncio.sleep(2.5)
    await stage.confirm(wish, token, KIM)


async def expired(stage: Stage) -> None:
    """Somebody goes for a coffee and confirms when the token has run out."""
    wish = stage.on(LEE, "tidb_restore_cluster", "staging-5", pointInTime="2026-03-08T06:00:00Z")
    token = await stage.issue(wish, LEE)
    await asyncio.sleep(stage.token_seconds + 3)
    await stage.confirm(wish, token, LEE)


async def late_return(stage: Stage) -> None:
    """Bring a spent token back after it has run out: refused as expired, and still a reuse."""
    wish = stage.on(BO, "tidb_delete_sql_user", "prod-7", userName="reporting")
    token = await stage.spend(wish, BO)
    await asyncio.sleep(stage.token_seconds + 8)
    ghost = elsewhere(BO, address="198.51.100.77", client="python-httpx 0.28")
    await stage.confirm(wish, token, ghost)


async def much_later(stage: Stage) -> None:
    """Eight minutes after the work was done, the same client presents the token again."""
    wish = stage.on(DEPLOYER, "tidb_create_backup", "prod-7", displayName=_label(stage))
    token = await stage.spend(wish, DEPLOYER)
    await asyncio.sleep(8 * 60)
    await stage.confirm(wish, token, DEPLOYER)


Story = Callable[[Stage], Awaitable[None]]
SCRIPT: Final[tuple[tuple[float, Story], ...]] = (
    (0.3, lost_answer),
    (1, expired),
    (1, late_return),
    (1, much_later),
    (2, stolen_token),
    (4, second_execute),
    (6, other_target),
    (8, work_failed),
    (10, other_tenant),
    (12, skipped_preflight),
    (14, plan_changed),
    (16, forged_flood),
)
"""Seconds after the start, and what begins then."""
AGAIN: Final[tuple[Story, ...]] = tuple(story for _, story in SCRIPT if story is not much_later)
"""What may happen again later on."""


async def scripted(stage: Stage, *, again_seconds: float) -> None:
    """Tell every story once, then now and then one of them again."""
    async with asyncio.TaskGroup() as group:
        for start, story in SCRIPT:
            group.create_task(_after(start, story, stage))
        while True:
            await asyncio.sleep(stage.chance.uniform(0.5, 1.5) * again_seconds)
            group.create_task(_after(0, stage.chance.choice(AGAIN), stage))


async def _after(seconds: float, story: Story, stage: Stage) -> None:
    await asyncio.sleep(seconds)
    await story(stage)


def _label(stage: Stage) -> str:
    return f"nightly-{stage.chance.randint(1000, 9999)}"


def _noise(stage: Stage, length: int) -> str:
    return "".join(stage.chance.choices(_BASE64URL, k=length))
