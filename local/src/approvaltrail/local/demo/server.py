"""The demonstration's server, and the MCP clients that call it over streamable HTTP.

Run as `python -m approvaltrail.local.demo.server --data DIR --port N --seed S`; addresses come
from the environment. Serves /healthz, /readyz and /metrics until SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import random
import secrets
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog
from prometheus_client import CollectorRegistry

from approvaltrail.consumers.health import Condition, HealthServer, health_app
from approvaltrail.consumers.logs import configure_logs
from approvaltrail.local.demo.calling import Calls
from approvaltrail.local.demo.hosting import LOOPBACK, application, gate_settings, hosted
from approvaltrail.local.demo.incidents import Stage, scripted
from approvaltrail.local.demo.ordinary import ordinary_traffic
from approvaltrail.local.demo.people import PEOPLE
from approvaltrail.local.demo.world import DemoWorld
from approvaltrail.producer import Producer, ProducerSettings

SERVICE: Final = "tidb-mcp"
TOKEN_LIFETIME: Final = timedelta(minutes=1)
"""Shorter than the usual ten minutes, so that expiry can be seen while one watches."""
_PAUSE_SECONDS: Final = 1.2
_AGAIN_SECONDS: Final = 75.0
_CLOSE_SECONDS: Final = 8.0
_CLIENTS: Final = ("httpx2", "httpcore2", "mcp")
_log = structlog.get_logger("approvaltrail.demo")


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
        ProducerSettings.from_environment(
            service=SERVICE, instance="demo-1", close_seconds=_CLOSE_SECONDS
        ),
        registry=registry,
    )
    world = DemoWorld()
    secret = _secret(options.data / "confirm-secret")
    settings = gate_settings(secret, options.data / "tokens.db", TOKEN_LIFETIME)
    served = application(settings, producer, world, PEOPLE)
    health = HealthServer(
        health_app(lambda: _condition(producer), registry), host=LOOPBACK, port=options.port
    )
    try:
        async with hosted(served) as url:  # starts the producer, and drains it in the end
            await health.start()
            _log.info("demo_started", seed=options.seed, mcp=f"{url}/mcp")
            async with Calls(url, world) as calls:
                await _traffic(calls, world, options.seed, stop)
    finally:
        await health.stop()
        served.gate.close()


async def _traffic(calls: Calls, world: DemoWorld, seed: int, stop: asyncio.Event) -> None:
    chance = random.Random(seed)  # noqa: S311 - traffic, not secrets
    seconds = TOKEN_LIFETIME.total_seconds()
    stage = Stage(calls=calls, world=world, chance=chance, token_seconds=seconds)
    async with asyncio.TaskGroup() as group:
        work = (
            group.create_task(ordinary_traffic(calls, world, chance, pause_seconds=_PAUSE_SECONDS)),
            group.create_task(scripted(stage, again_seconds=_AGAIN_SECONDS)),
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
    for library in _CLIENTS:
        logging.getLogger(library).setLevel(logging.WARNING)  # a line for each call is noise
    asyncio.run(serve(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
