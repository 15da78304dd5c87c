"""The demonstration's server: gate and producer embedded as any server embeds them, and traffic.

Run as `python -m approvaltrail.local.demo.server --data DIR --port N --seed S`; addresses come
from the environment. Serves /healthz, /readyz and /metrics until SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import secrets
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from prometheus_client import CollectorRegistry

from approvaltrail.consumers.health import Condition, HealthServer, health_app
from approvaltrail.consumers.logs import configure_logs
from approvaltrail.gate import Gate, GateSettings, LedgerKind
from approvaltrail.local.demo.incidents import Stage, scripted
from approvaltrail.local.demo.ordinary import ordinary_traffic
from approvaltrail.local.demo.platform import Platform
from approvaltrail.local.demo.tools import ToolServer
from approvaltrail.producer import Producer, ProducerSettings

SERVICE: Final = "tidb-mcp"
TOKEN_SECONDS: Final = 60.0
"""Shorter than the usual ten minutes, so that expiry can be seen while one watches."""
_PAUSE_SECONDS: Final = 1.2
_AGAIN_SECONDS: Final = 75.0
_CLOSE_SECONDS: Final = 8.0
_PROBE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    data: Path
    port: int
    seed: int


async def serve(options: Options) -> None:
    """Make traffic until SIGTERM or SIGINT, then drain and close the journal."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    registry = CollectorRegistry()
    producer = Producer(
        ProducerSettings.from_environment(service=SERVICE, instance="demo-1"), registry=registry
    )
    settings = GateSettings.from_environment(
        confirm_secret=_secret(options.data / "confirm-secret"),
        ledger=LedgerKind.SQLITE,
        token_store=options.data / "tokens.db",
        confirm_ttl_ms=int(TOKEN_SECONDS * 1000),
    )
    gate = Gate(settings, recorder=producer)
    producer.start()
    health = HealthServer(
        health_app(lambda: _condition(producer), registry),
        host="127.0.0.1",
        port=options.port,
    )
    try:
        await health.start()
        await _traffic(gate, producer, options.seed, stop)
    finally:
        await health.stop()
        await producer.close(timeout_seconds=_CLOSE_SECONDS)
        gate.ledger.close()


async def _traffic(gate: Gate, producer: Producer, seed: int, stop: asyncio.Event) -> None:
    platform = Platform()
    server = ToolServer(gate, platform)
    chance = random.Random(seed)  # noqa: S311 - traffic, not secrets
    stage = Stage(server=server, platform=platform, chance=chance, token_seconds=TOKEN_SECONDS)
    async with asyncio.TaskGroup() as group:
        work = (
            group.create_task(ordinary_traffic(server, chance, pause_seconds=_PAUSE_SECONDS)),
            group.create_task(scripted(stage, again_seconds=_AGAIN_SECONDS)),
            group.create_task(_watch_ledger(gate, producer)),
        )
        await stop.wait()
        for task in work:
            task.cancel()


def _condition(producer: Producer) -> Condition:
    health = producer.health()
    return Condition(
        ready=health.ready,
        state="degraded" if health.degraded else "ok",
        reasons=tuple(reason.text for reason in health.reasons),
        details={"last_sequence": health.last_sequence, "pending": health.pending},
    )


async def _watch_ledger(gate: Gate, producer: Producer) -> None:
    while True:
        producer.report_ledger(await asyncio.to_thread(gate.ledger.probe))
        await asyncio.sleep(_PROBE_SECONDS)


def _secret(path: Path) -> str:
    """Return the secret of this data folder, made when it is first asked for."""
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48))
    return path.read_text()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the server."""
    parser = argparse.ArgumentParser(prog="approvaltrail.local.demo.server", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    options = Options(**vars(parser.parse_args(argv)))
    configure_logs("demo-server")
    structlog.get_logger("approvaltrail.demo").info("demo_started", seed=options.seed)
    asyncio.run(serve(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
