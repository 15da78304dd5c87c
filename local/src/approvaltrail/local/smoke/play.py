"""The course of a smoke run: traffic, a killed sink, bad messages, and patience."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import secrets
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, TypeVar

import structlog

from approvaltrail.local.errors import StuckError
from approvaltrail.local.smoke import evidence
from approvaltrail.local.smoke.evidence import Number
from approvaltrail.local.smoke.poison import record_poison
from approvaltrail.local.smoke.server import SmokeServer, serve
from approvaltrail.local.smoke.tally import Tally
from approvaltrail.local.smoke.topic import RawMessage, lag, read_all, send
from approvaltrail.local.smoke.traffic import run_traffic
from approvaltrail.local.up import Running
from approvaltrail.schemas.topics import EVENTS, HEARTBEATS, SEALS
from approvaltrail.store.connection import open_store

Say = Callable[[str], None]
_Found = TypeVar("_Found")
_KILL_AFTER: Final = 0.35
_DISTURB_AFTER: Final = 0.6
"""Shares of the traffic after which the sink is killed, and after which bad messages are sent."""
_FEWEST_DUPLICATES: Final = 20
_DUPLICATED_SHARE: Final = 0.1
_SETTLE_SECONDS: Final = 120.0
_LOOK_EVERY_SECONDS: Final = 0.25
_GROUP: Final = "approval-trail-sink"
_SINK_TOPICS: Final = (EVENTS, HEARTBEATS, SEALS)
_HOPS: Final = ("journal", "journal files", "topics", "topic files", "store", "store files")
"""Where the nonce of an ordinary token must be found at the end."""


@dataclass(slots=True, kw_only=True)
class Play:
    """One run's course, and what it did."""

    running: Running
    events: int
    seed: int
    say: Say
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    tally: Tally = field(default_factory=Tally)
    duplicates_sent: int = 0
    poison: Number = ("", 0)
    canaries: dict[str, str] = field(default_factory=dict)
    """Hop → the nonce that must be found there."""

    @property
    def kafka(self) -> str:
        """Where the broker is."""
        return self.running.servers.kafka_bootstrap_servers

    async def run(self) -> None:
        """Make traffic, disturb it, and wait until all has arrived."""
        root = self.running.folder.root
        async with serve(self.running.servers, root, self.seed) as server:
            self.tally = server.tally
            async with asyncio.TaskGroup() as group:
                group.create_task(self._traffic(server))
                group.create_task(self._disturb(server))
            self.say(f"{server.tally.total} events recorded; draining the journal")
        self._choose_canaries()
        await self._settled()

    async def _traffic(self, server: SmokeServer) -> None:
        await run_traffic(server.actor, events=self.events, count=lambda: server.tally.total)

    async def _disturb(self, server: SmokeServer) -> None:
        await self._reached(server, _KILL_AFTER)
        await self._storing()
        self._kill_sink()
        await self._reached(server, _DISTURB_AFTER)
        await self._send_poison()
        await self._send_duplicates()

    async def _reached(self, server: SmokeServer, share: float) -> None:
        while server.tally.total < share * self.events:  # noqa: ASYNC110 - a count, no event
            await asyncio.sleep(0.01)

    async def _storing(self) -> None:
        """Wait until the sink has begun to store: it is to be killed at work, not before."""
        with open_store(self.running.servers.writer_dsn) as store:

            async def some() -> bool | None:
                return await asyncio.to_thread(evidence.stored_count, store) > 0 or None

            await _until(some, "the sink stores nothing")

    def _kill_sink(self) -> None:
        sink = next(one for one in self.running.supervisor.statuses if one.name == "sink")
        if sink.pid is not None:
            self.say(f"SIGKILL to the sink (process {sink.pid}) under load")
            os.kill(sink.pid, signal.SIGKILL)

    async def _send_poison(self) -> None:
        nonce = secrets.token_urlsafe(16)
        self.canaries["dead letters"] = nonce
        journals = self.running.folder.journals / "poison"
        self.poison, message = await record_poison(self.running.servers, journals, nonce)
        await send(self.kafka, EVENTS, [message])

    async def _send_duplicates(self) -> None:
        async def some() -> list[RawMessage] | None:
            found = [one for one in await read_all(self.kafka, EVENTS) if self._is_sound(one)]
            return found if len(found) >= _FEWEST_DUPLICATES else None

        messages = await _until(some, "no events reached the topic")
        chance = random.Random(self.seed)  # noqa: S311 - which messages, not secrets
        count = max(_FEWEST_DUPLICATES, int(self.events * _DUPLICATED_SHARE))
        await send(self.kafka, EVENTS, chance.choices(messages, k=count))
        self.duplicates_sent = count
        self.say(f"{count} messages sent a second time, 1 poison message sent")

    def _is_sound(self, message: RawMessage) -> bool:
        return dict(message.headers).get("producer_id", b"").decode() != self.poison[0]

    def _choose_canaries(self) -> None:
        chance = random.Random(self.seed)  # noqa: S311 - which nonces, not secrets
        nonces = sorted(set(self.tally.tokens.values()) - set(self.tally.reuses))
        self.canaries |= dict(zip(_HOPS, chance.sample(nonces, len(_HOPS)), strict=True))
        self.canaries["pages"] = chance.choice(sorted(self.tally.reuses))
        self.canaries["logs"] = secrets.token_urlsafe(16)
        log = structlog.get_logger("approvaltrail.local")
        log.info("smoke_canary", nonce=self.canaries["logs"])

    async def _settled(self) -> None:
        """Wait until the sink has taken everything, duplicates and poison too."""
        with open_store(self.running.servers.writer_dsn) as store:

            async def arrived() -> bool | None:
                stored = await asyncio.to_thread(evidence.stored_count, store)
                dead = await asyncio.to_thread(evidence.dead_count, store)
                behind = await lag(self.kafka, _SINK_TOPICS, _GROUP)
                return (stored >= self.tally.total and dead >= 1 and behind == 0) or None

            with contextlib.suppress(StuckError):  # the checks then say what lacks
                await _until(arrived, "not all arrived")


async def _until(look: Callable[[], Awaitable[_Found | None]], problem: str) -> _Found:
    """Look again and again until there is something.

    Raises:
        StuckError: two minutes passed.
    """
    deadline = time.monotonic() + _SETTLE_SECONDS
    while time.monotonic() < deadline:
        found = await look()
        if found is not None:
            return found
        await asyncio.sleep(_LOOK_EVERY_SECONDS)
    raise StuckError(
        f"{problem}, {_SETTLE_SECONDS:g} s long: run again with --keep, and see the logs"
    )
