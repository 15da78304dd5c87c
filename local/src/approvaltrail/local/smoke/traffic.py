"""Seeded traffic: ordinary calls and every kind of reuse, many at once."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from approvaltrail.gate import Caller, Preflight
from approvaltrail.local.demo.people import PEOPLE, Wish, elsewhere, usual_wish
from approvaltrail.local.demo.platform import Platform, PlatformError
from approvaltrail.local.demo.tools import ToolServer
from approvaltrail.schemas.token_shape import TOKEN_PREFIX

CALLERS_AT_ONCE: Final = 16
_BASE64URL: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """One caller's line of work: the server now, the same server later, and chance."""

    server: ToolServer
    later: ToolServer
    """The same keys, ledger and journal with a clock past every token's expiry."""
    platform: Platform
    chance: random.Random
    number: int

    @property
    def caller(self) -> Caller:
        """Somebody."""
        return self.chance.choice(PEOPLE)

    def own(self, tool: str, **arguments: object) -> Wish:
        """Wish for something on a cluster that nobody else names, so that no plan shifts."""
        name = f"smoke-{self.number}-{self.chance.getrandbits(40):x}"
        return Wish(tool, {"cluster": name, **arguments})

    async def issue(self, wish: Wish, caller: Caller) -> str:
        """Run a preflight and return its token."""
        answer = await self.server.call(wish.tool, wish.arguments, caller)
        if not isinstance(answer, Preflight):
            raise RuntimeError(f"a preflight of the smoke run was refused: {answer}")  # noqa: TRY004 - not a type error
        return answer.token

    async def confirm(
        self, wish: Wish, token: str | None, caller: Caller, server: ToolServer | None = None
    ) -> None:
        """Confirm; the answer is counted by the server."""
        with contextlib.suppress(PlatformError):
            await (server or self.server).call(wish.tool, wish.confirmed_with(token), caller)


Scenario = Callable[[Actor], Awaitable[None]]


async def _ordinary(actor: Actor) -> None:
    caller, wish = actor.caller, usual_wish(actor.chance)
    await actor.confirm(wish, await actor.issue(wish, caller), caller)


async def _never_confirmed(actor: Actor) -> None:
    await actor.issue(usual_wish(actor.chance), actor.caller)


async def _replayed(actor: Actor) -> None:
    caller, wish = actor.caller, actor.own("tidb_delete_cluster")
    token = await actor.issue(wish, caller)
    await actor.confirm(wish, token, caller)
    again = elsewhere(caller, address="203.0.113.9", client="curl/8.9", session="session-other")
    for _ in range(actor.chance.randint(1, 4)):
        await actor.confirm(wish, token, actor.chance.choice([caller, again]))


async def _raced(actor: Actor) -> None:
    caller, wish = actor.caller, actor.own("tidb_create_cluster", nodes=3)
    token = await actor.issue(wish, caller)
    await asyncio.gather(*(actor.confirm(wish, token, caller) for _ in range(3)))


async def _accepted_twice(actor: Actor) -> None:
    caller, wish = actor.caller, actor.own("tidb_execute", sql="SELECT 1")
    token = await actor.issue(wish, caller)
    await actor.confirm(wish, token, caller)
    await actor.confirm(wish, token, caller)


async def _carried_elsewhere(actor: Actor) -> None:
    caller, wish = actor.caller, actor.own("tidb_create_backup", label="a")
    token = await actor.issue(wish, caller)
    await actor.confirm(wish, token, caller)
    stranger = replace(caller, tenant="intruder", principal="eve@intruder.example")
    await actor.confirm(wish, token, stranger)
    await actor.confirm(replace(wish, tool="tidb_restore_cluster"), token, caller)
    await actor.confirm(actor.own("tidb_create_backup", label="a"), token, caller)
    await actor.confirm(replace(wish, arguments={**wish.arguments, "label": "b"}), token, caller)


async def _refused_then_accepted(actor: Actor) -> None:
    caller, wish = actor.caller, actor.own("tidb_delete_branch", branch="main")
    token = await actor.issue(wish, caller)
    await actor.confirm(actor.own("tidb_delete_branch", branch="main"), token, caller)
    await actor.confirm(wish, token, caller)


async def _came_late(actor: Actor) -> None:
    caller, wish = actor.caller, actor.own("tidb_restore_backup", backup="nightly")
    token = await actor.issue(wish, caller)
    if actor.chance.random() < 0.5:  # noqa: PLR2004 - half of them are spent before
        await actor.confirm(wish, token, caller)
    await actor.confirm(wish, token, caller, actor.later)


async def _failed(actor: Actor) -> None:
    caller, wish = actor.caller, actor.own("tidb_create_cluster", nodes=3)
    actor.platform.break_next(str(wish.arguments["cluster"]))
    token = await actor.issue(wish, caller)
    await actor.confirm(wish, token, caller)
    await actor.confirm(wish, token, caller)


async def _without_token(actor: Actor) -> None:
    await actor.confirm(usual_wish(actor.chance), None, actor.caller)


async def _forged(actor: Actor) -> None:
    wish = usual_wish(actor.chance)
    real = await actor.issue(wish, actor.caller)
    noise = "".join(actor.chance.choices(_BASE64URL, k=42)) + "A"
    payload = actor.chance.choice(
        [real.split(".")[1], "".join(actor.chance.choices(_BASE64URL, k=80))]
    )
    await actor.confirm(wish, f"{TOKEN_PREFIX}.{payload}.{noise}", actor.caller)
    await actor.confirm(wish, "\x1b]0;hostile\x07 '; DROP TABLE events --", actor.caller)


_MIX: Final[dict[Scenario, int]] = {
    _ordinary: 40,
    _never_confirmed: 8,
    _replayed: 12,
    _raced: 4,
    _accepted_twice: 6,
    _carried_elsewhere: 6,
    _refused_then_accepted: 5,
    _came_late: 5,
    _failed: 5,
    _without_token: 4,
    _forged: 5,
}


async def run_traffic(
    make_actor: Callable[[int], Actor], *, events: int, count: Callable[[], int]
) -> None:
    """Play scenarios, 16 callers at once, until the count has reached `events`.

    Every kind is played at least once.
    """
    first = list(_MIX)

    async def work(number: int) -> None:
        actor = make_actor(number)
        for scenario in first[number::CALLERS_AT_ONCE]:
            await scenario(actor)
        kinds, weights = list(_MIX), list(_MIX.values())
        while count() < events:
            await actor.chance.choices(kinds, weights)[0](actor)

    async with asyncio.TaskGroup() as group:
        for number in range(CALLERS_AT_ONCE):
            group.create_task(work(number))
