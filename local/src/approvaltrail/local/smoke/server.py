"""The server of a smoke run: the demonstration's, with a tally of what clients were answered."""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from approvaltrail.gate import SystemClock
from approvaltrail.local.demo.calling import Calls
from approvaltrail.local.demo.hosting import application, gate_settings, hosted
from approvaltrail.local.demo.people import PEOPLE
from approvaltrail.local.demo.world import DemoWorld
from approvaltrail.local.smoke.tally import TalliedCalls, Tally
from approvaltrail.local.smoke.traffic import Actor
from approvaltrail.local.stack import Servers
from approvaltrail.producer import Producer, ProducerSettings
from approvaltrail.schemas import ApprovalEvent, EventRecorder, Recorded

SERVICE: Final = "smoke"
LIFETIME: Final = timedelta(minutes=10)
LATER: Final = timedelta(minutes=11)
"""Past every token's expiry, and less ahead than the sink tolerates."""
_CLOSE_SECONDS: Final = 60.0


class LaterClock:
    """Eleven minutes ahead."""

    def now(self) -> datetime:
        """Return the present instant and eleven minutes."""
        return datetime.now(UTC) + LATER


class Borrowed:
    """A recorder that somebody else starts and closes: two servers share it."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    async def record(self, event: ApprovalEvent) -> Recorded:
        """Record one event."""
        return await self._recorder.record(event)

    def record_sync(self, event: ApprovalEvent) -> Recorded:
        """Record one event from a thread."""
        return self._recorder.record_sync(event)

    def check(self) -> None:
        """Return if an event could be recorded now."""
        self._recorder.check()

    def count_unrecorded(self, event: ApprovalEvent) -> None:
        """Count a refusal that could not be recorded."""
        self._recorder.count_unrecorded(event)

    def report_scrubbed(self, values: int) -> None:
        """Count values from which a token was removed."""
        self._recorder.report_scrubbed(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeServer:
    """A running server with its tally."""

    calls: TalliedCalls
    later: TalliedCalls
    """The same keys, ledger and journal with a clock past every token's expiry."""
    world: DemoWorld
    tally: Tally
    seed: int

    def actor(self, number: int) -> Actor:
        """Return one caller's line of work, with chances of its own."""
        return Actor(
            calls=self.calls,
            later=self.later,
            world=self.world,
            chance=random.Random(f"{self.seed}/{number}"),  # noqa: S311 - traffic, not secrets
            number=number,
        )


def producer_settings(servers: Servers, journals: Path) -> ProducerSettings:
    """Return settings of a producer whose journals lie in this folder, on whatever disk."""
    return ProducerSettings.from_environment(
        service=SERVICE,
        journal_dir=journals,
        journal_allowed_file_systems="tmpfs,ramfs",
        kafka_bootstrap_servers=servers.kafka_bootstrap_servers,
        kafka_security_protocol="PLAINTEXT",
        topic_prefix="",
        heartbeat_seconds=1.0,
    )


@contextlib.asynccontextmanager
async def serve(servers: Servers, folder: Path, seed: int) -> AsyncIterator[SmokeServer]:
    """Run a server; when the block ends, the journal has been delivered and closed."""
    producer = Producer(producer_settings(servers, folder / "journals" / "main"))
    producer.start()
    try:
        async with serving(producer, folder / "tokens.db", seed) as server:
            yield server
    finally:
        await producer.close(timeout_seconds=_CLOSE_SECONDS)


@contextlib.asynccontextmanager
async def serving(
    recorder: EventRecorder, token_store: Path, seed: int
) -> AsyncIterator[SmokeServer]:
    """Serve now and, on another port, eleven minutes later; give the clients of both."""
    world, tally = DemoWorld(), Tally()
    settings = gate_settings(secrets.token_urlsafe(48), token_store, LIFETIME)
    now = application(settings, Borrowed(recorder), world, PEOPLE, clock=SystemClock())
    ledger = now.gate.ledger
    later = application(
        settings, Borrowed(recorder), world, PEOPLE, ledger=ledger, clock=LaterClock()
    )
    try:
        async with (
            hosted(now) as here,
            hosted(later) as there,
            Calls(here, world) as calls,
            Calls(there, world) as later_calls,
        ):
            yield SmokeServer(
                calls=TalliedCalls(calls, tally),
                later=TalliedCalls(later_calls, tally),
                world=world,
                tally=tally,
                seed=seed,
            )
    finally:
        now.gate.close()
