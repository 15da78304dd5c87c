"""Scripted incidents: each is a short story that an investigator can read in its trail."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from approvaltrail.gate import Caller, Preflight
from approvaltrail.local.demo.people import AGENT, ANA, BO, DEPLOYER, KIM, LEE, Wish, elsewhere
from approvaltrail.local.demo.platform import Platform, PlatformError
from approvaltrail.local.demo.tools import ToolServer
from approvaltrail.schemas.token_shape import TOKEN_PREFIX

FORGED_FLOOD: Final = 40
_BASE64URL: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_MAC_LENGTH: Final = 43


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a story needs: the server, its platform, chance, and how long tokens live."""

    server: ToolServer
    platform: Platform
    chance: random.Random
    token_seconds: float

    async def issue(self, wish: Wish, caller: Caller) -> str:
        """Run a preflight and return its token."""
        answer = await self.server.call(wish.tool, wish.arguments, caller)
        if not isinstance(answer, Preflight):
            raise RuntimeError(f"the demo's preflight was refused: {answer}")  # noqa: TRY004 - not a type error
        return answer.token

    async def confirm(self, wish: Wish, token: str | None, caller: Caller) -> None:
        """Confirm; a refusal or a failed execution is part of the story."""
        with contextlib.suppress(PlatformError):
            await self.server.call(wish.tool, wish.confirmed_with(token), caller)

    async def spend(self, wish: Wish, caller: Caller, reading_seconds: float = 0.5) -> str:
        """Run both steps and return the token, which is spent where the tool is ledgered."""
        token = await self.issue(wish, caller)
        await asyncio.sleep(reading_seconds)
        await self.confirm(wish, token, caller)
        return token


async def lost_answer(stage: Stage) -> None:
    """Let a client lose the answer and send the same call again two seconds later."""
    wish = Wish("tidb_create_backup", {"cluster": "prod-1", "label": _label(stage)})
    token = await stage.spend(wish, DEPLOYER)
    await asyncio.sleep(2)
    await stage.confirm(wish, token, DEPLOYER)


async def stolen_token(stage: Stage) -> None:
    """Bring a spent token of a deletion back from another address and client."""
    wish = Wish("tidb_delete_cluster", {"cluster": f"prod-{stage.chance.randint(20, 99)}"})
    token = await stage.spend(wish, ANA, 1.2)
    await asyncio.sleep(4)
    thief = elsewhere(ANA, address="203.0.113.9", client="curl/8.9", session="session-stolen")
    for _ in range(4):
        await stage.confirm(wish, token, thief)
        await asyncio.sleep(1.5)


async def other_target(stage: Stage) -> None:
    """Try a spent token on another cluster: refused before the ledger is asked."""
    token = await stage.spend(Wish("tidb_delete_cluster", {"cluster": "dev-8"}), AGENT)
    await asyncio.sleep(1)
    await stage.confirm(Wish("tidb_delete_cluster", {"cluster": "prod-1"}), token, AGENT)


async def other_tenant(stage: Stage) -> None:
    """Another customer presents a spent token for its own cluster of the same name."""
    wish = Wish("tidb_restore_backup", {"cluster": "prod-7", "backup": _label(stage)})
    token = await stage.spend(wish, KIM)
    await asyncio.sleep(1.5)
    await stage.confirm(wish, token, LEE)


async def second_execute(stage: Stage) -> None:
    """On an unledgered tool the same token is accepted a second time."""
    wish = Wish("tidb_execute", {"cluster": "staging-2", "sql": "DELETE FROM carts"})
    token = await stage.spend(wish, BO)
    await asyncio.sleep(3)
    await stage.confirm(wish, token, BO)


async def skipped_preflight(stage: Stage) -> None:
    """Confirm at once, without any token, as an agent in a hurry does."""
    await stage.confirm(Wish("tidb_execute", {"cluster": "prod-1", "sql": "DROP"}), None, AGENT)


async def forged_flood(stage: Stage) -> None:
    """Somebody makes tokens up, many in a row; one has a real token's payload."""
    stranger = replace(
        LEE, principal=None, credential_id=None, client_address="203.0.113.200", client_name="x"
    )
    wish = Wish("tidb_delete_cluster", {"cluster": "prod-1"})
    real = await stage.issue(wish, LEE)
    payload = real.split(".")[1]
    for number in range(FORGED_FLOOD):
        chosen = payload if number % 4 == 0 else _noise(stage, 120)
        forged = f"{TOKEN_PREFIX}.{chosen}.{_noise(stage, _MAC_LENGTH - 1)}A"
        await stage.confirm(wish, forged, stranger)
        await asyncio.sleep(0.02)


async def plan_changed(stage: Stage) -> None:
    """Between reading and confirming, somebody adds a user to the cluster."""
    name = f"staging-{stage.chance.randint(20, 99)}"
    wish = Wish("tidb_delete_cluster", {"cluster": name})
    token = await stage.issue(wish, BO)
    stage.platform.cluster(BO.tenant or "", name).sql_users.add("newcomer")
    await asyncio.sleep(1)
    await stage.confirm(wish, token, BO)


async def work_failed(stage: Stage) -> None:
    """Fail after the token is spent, and have the client try the same token again."""
    name = f"dev-{stage.chance.randint(20, 99)}"
    wish = Wish("tidb_create_cluster", {"cluster": name, "region": "eu-west-1", "nodes": 3})
    stage.platform.break_next(name)
    token = await stage.spend(wish, KIM)
    await asyncio.sleep(2.5)
    await stage.confirm(wish, token, KIM)


async def expired(stage: Stage) -> None:
    """Somebody goes for a coffee and confirms when the token has run out."""
    wish = Wish("tidb_restore_cluster", {"cluster": "staging-5", "to": "2026-03-08T06:00:00Z"})
    token = await stage.issue(wish, LEE)
    await asyncio.sleep(stage.token_seconds + 3)
    await stage.confirm(wish, token, LEE)


async def late_return(stage: Stage) -> None:
    """Bring a spent token back after it has run out: refused as expired, and still a reuse."""
    wish = Wish("tidb_delete_sql_user", {"cluster": "prod-7", "sql_user": "reporting"})
    token = await stage.spend(wish, BO)
    await asyncio.sleep(stage.token_seconds + 8)
    ghost = elsewhere(BO, address="198.51.100.77", client="python-httpx/0.28", session="session-x")
    await stage.confirm(wish, token, ghost)


async def much_later(stage: Stage) -> None:
    """Eight minutes after the work was done, the same session presents the token again."""
    wish = Wish("tidb_create_backup", {"cluster": "prod-7", "label": _label(stage)})
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
