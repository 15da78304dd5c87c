"""The embedding server of a smoke run: gate and producer as real code uses them."""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from approvaltrail.gate import Gate, GateSettings, LedgerKind
from approvaltrail.local.demo.platform import Platform
from approvaltrail.local.demo.tools import ToolServer
from approvaltrail.local.smoke.tally import TalliedServer, Tally
from approvaltrail.local.smoke.traffic import Actor
from approvaltrail.local.stack import Servers
from approvaltrail.producer import Producer, ProducerSettings

SERVICE: Final = "smoke"
LATER: Final = timedelta(minutes=11)
"""Past every token's expiry, and less ahead than the sink tolerates."""
_CLOSE_SECONDS: Final = 60.0


class LaterClock:
    """Eleven minutes ahead."""

    def now(self) -> datetime:
        """Return the present instant and eleven minutes."""
        return datetime.now(UTC) + LATER


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeServer:
    """A running server with its tally."""

    server: TalliedServer
    later: TalliedServer
    platform: Platform
    tally: Tally
    seed: int
    producer: Producer = field(repr=False)

    def actor(self, number: int) -> Actor:
        """Return one caller's line of work, with chances of its own."""
        return Actor(
            server=self.server,
            later=self.later,
            platform=self.platform,
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
    settings = GateSettings.from_environment(
        confirm_secret=secrets.token_urlsafe(48),
        ledger=LedgerKind.SQLITE,
        token_store=folder / "tokens.db",
    )
    producer = Producer(producer_settings(servers, folder / "journals" / "main"))
    producer.start()
    try:
        gate = Gate(settings, recorder=producer)
        late_gate = Gate(settings, recorder=producer, ledger=gate.ledger, clock=LaterClock())
        platform, tally = Platform(), Tally()
        yield SmokeServer(
            server=TalliedServer(ToolServer(gate, platform), tally),
            later=TalliedServer(ToolServer(late_gate, platform), tally),
            platform=platform,
            tally=tally,
            seed=seed,
            producer=producer,
        )
        gate.ledger.close()
    finally:
        await producer.close(timeout_seconds=_CLOSE_SECONDS)
