"""Seeded traffic: ordinary calls and every kind of reuse, many at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from approvaltrail.local.demo.calling import DemoCallError, Shown
from approvaltrail.local.demo.people import PEOPLE, REGION, Person, Wish, elsewhere, usual_wish
from approvaltrail.local.demo.world import DemoWorld
from approvaltrail.local.smoke.tally import TalliedCalls
from approvaltrail.schemas.token_shape import TOKEN_PREFIX

CALLERS_AT_ONCE: Final = 16
_BASE64URL: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """One caller's line of work: the server now, the same server later, and chance."""

    calls: TalliedCalls
    later: TalliedCalls
    """The same keys, ledger and journal with a clock past every token's expiry."""
    world: DemoWorld
    chance: random.Random
    number: int

    @property
    def person(self) -> Person:
        """Somebody."""
        return self.chance.choice(PEOPLE)

    def stranger_to(self, person: Person) -> Person:
        """Somebody of another tenant."""
        return self.chance.choice([one for one in PEOPLE if one.tenant != person.tenant])

    def new_name(self) -> str:
        """Return a name that nobody else uses, so that no plan shifts."""
        return f"smoke-{self.number}-{self.chance.getrandbits(40):x}"

    def own(self, person: Person, tool: str, **arguments: Any) -> Wish:
        """Wish for something on a cluster that nobody else names."""
        return Wish(
            tool, {"clusterId": self.world.cluster(person.tenant, self.new_name()), **arguments}
        )

    def usual(self, person: Person) -> Wish:
        """Wish for something ordinary."""
        return usual_wish(self.chance, person, self.world)

    async def issue(self, wish: Wish, person: Person) -> str:
        """Run a preflight and return its token."""
        answer = await self.calls.preflight(wish, person)
        if not isinstance(answer, Shown):
            raise DemoCallError(f"a preflight of the smoke run was not shown: {answer}")
        return answer.token

    async def confirm(
        self, wish: Wish, token: str | None, person: Person, calls: TalliedCalls | None = None
    ) -> None:
        """Confirm; the answer is counted on its way."""
        await (calls or self.calls).confirm(wish, token, person)


Scenario = Callable[[Actor], Awaitable[None]]


async def _ordinary(actor: Actor) -> None:
    person = actor.person
    wish = actor.usual(person)
    await actor.confirm(wish, await actor.issue(wish, person), person)


async def _never_confirmed(actor: Actor) -> None:
    person = actor.person
    await actor.issue(actor.usual(person), person)


async def _replayed(actor: Actor) -> None:
    person = actor.person
    wish = actor.own(person, "tidb_delete_cluster")
    token = await actor.issue(wish, person)
    await actor.confirm(wish, token, person)
    again = elsewhere(person, address="203.0.113.9", client="curl 8.9")
    for _ in range(actor.chance.randint(1, 4)):
        await actor.confirm(wish, token, actor.chance.choice([person, again]))


async def _raced(actor: Actor) -> None:
    person = actor.person
    wish = Wish("tidb_create_cluster", {"displayName": actor.new_name(), "region": REGION})
    token = await actor.issue(wish, person)
    await asyncio.gather(*(actor.confirm(wish, token, person) for _ in range(3)))


async def _accepted_twice(actor: Actor) -> None:
    person = actor.person
    wish = actor.own(person, "tidb_execute", database="shop", sql="SELECT 1")
    token = await actor.issue(wish, person)
    await actor.confirm(wish, token, person)
    await actor.confirm(wish, token, person)


async def _carried_elsewhere(actor: Actor) -> None:
    person = actor.person
    wish = actor.own(person, "tidb_create_backup", displayName="nightly-a")
    token = await actor.issue(wish, person)
    await actor.confirm(wish, token, person)
    await actor.confirm(wish, token, actor.stranger_to(person))
    other_tool = Wish("tidb_delete_cluster", {"clusterId": wish.arguments["clusterId"]})
    await actor.confirm(other_tool, token, person)
    other_target = actor.own(person, "tidb_create_backup", displayName="nightly-a")
    await actor.confirm(other_target, token, person)
    await actor.confirm(wish.with_arguments(displayName="nightly-b"), token, person)


async def _refused_then_accepted(actor: Actor) -> None:
    person = actor.person
    wish = actor.own(person, "tidb_delete_branch", branchId="main")
    token = await actor.issue(wish, person)
    await actor.confirm(actor.own(person, "tidb_delete_branch", branchId="main"), token, person)
    await actor.confirm(wish, token, person)


async def _came_late(actor: Actor) -> None:
    person = actor.person
    backup = actor.world.backup(person.tenant, actor.new_name())
    wish = Wish("tidb_restore_backup", {"backupId": backup})
    token = await actor.issue(wish, person)
    if actor.chance.random() < 0.5:  # noqa: PLR2004 - half of them are spent before
        await actor.confirm(wish, token, person)
    await actor.confirm(wish, token, person, actor.later)


async def _failed(actor: Actor) -> None:
    person, name = actor.person, actor.new_name()
    wish = Wish("tidb_create_cluster", {"displayName": name, "region": REGION})
    actor.world.break_next(name)
    token = await actor.issue(wish, person)
    await actor.confirm(wish, token, person)
    await actor.confirm(wish, token, person)


async def _without_token(actor: Actor) -> None:
    person = actor.person
    await actor.confirm(actor.usual(person), None, person)


async def _forged(actor: Actor) -> None:
    person = actor.person
    wish = actor.usual(person)
    real = await actor.issue(wish, person)
    noise = "".join(actor.chance.choices(_BASE64URL, k=42)) + "A"
    payload = actor.chance.choice(
        [real.split(".")[1], "".join(actor.chance.choices(_BASE64URL, k=80))]
    )
    await actor.confirm(wish, f"{TOKEN_PREFIX}.{payload}.{noise}", person)
    await actor.confirm(wish, "\x1b]0;hostile\x07 '; DROP TABLE events --", person)


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
