"""The server under test: gate and producer embedded, served as MCP over streamable HTTP."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from approvaltrail.gate import Clock, Deployment, GateSettings, Ledger, LedgerKind
from approvaltrail.local.demo.people import Person
from approvaltrail.local.demo.world import DemoWorld, ScratchDatabase
from approvaltrail.schemas import EventRecorder
from approvaltrail.server.application import Application
from approvaltrail.server.assembly import build
from approvaltrail.server.auth import CallerBook, Identity
from approvaltrail.server.testing import server_settings, serving

LOOPBACK: Final = "127.0.0.1"


def gate_settings(secret: str, token_store: Path, lifetime: timedelta) -> GateSettings:
    """Return the settings of a writable remote that is the only process of its ledger."""
    return GateSettings.from_environment(
        confirm_secret=SecretStr(secret),
        confirm_ttl_ms=int(lifetime.total_seconds() * 1000),
        deployment=Deployment.REMOTE,
        ledger=LedgerKind.SQLITE,
        token_store=token_store,
        single_process=True,
    )


def application(
    settings: GateSettings,
    recorder: EventRecorder,
    world: DemoWorld,
    people: Iterable[Person],
    *,
    ledger: Ledger | None = None,
    clock: Clock | None = None,
) -> Application:
    """Put the server together: its callers, each under their tenant's own authority."""
    callers = {}
    for person in people:
        key = world.key(person.tenant, person.principal)
        callers[key.text] = Identity(
            tenant=person.tenant,
            principal=person.principal,
            principal_kind=person.kind,
            api_key=key,
        )
    return build(
        server_settings(None, trusted_proxies=LOOPBACK, own_keys=True),
        settings,
        recorder=recorder,
        ledger=ledger,
        clock=clock,
        platforms=world,
        identifier=CallerBook.of_tokens(callers),
        templates=(),
        sql_runner=ScratchDatabase,
    )


@contextlib.asynccontextmanager
async def hosted(served: Application) -> AsyncIterator[str]:
    """Serve an application on a free port of the loopback; give its URL."""
    async with serving(served.http()) as url:
        yield url
