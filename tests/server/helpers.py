"""What the server's tests share."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from mcp import Client
from mcp_types import CallToolResult
from pydantic import SecretStr

from approvaltrail.gate import Deployment, GateSettings, Ledger, MemoryLedger
from approvaltrail.gate.testing import ManualClock
from approvaltrail.producer.testing import MemoryRecorder
from approvaltrail.schemas.token_shape import looks_like_token, parts_of
from approvaltrail.server.application import Application
from approvaltrail.server.assembly import build
from approvaltrail.server.platform.values import ApiKey
from approvaltrail.server.templates import Template, templates_of
from approvaltrail.server.testing import MemoryPlatforms, World
from approvaltrail.server.testing.running import server_settings
from approvaltrail.server.testing.world import small_world

DELETE = "tidb_delete_cluster"
EXECUTE = "tidb_execute"


@dataclass(kw_only=True)
class Local:
    """A server in process, and a client that is connected to it."""

    application: Application
    client: Client
    recorder: MemoryRecorder
    clock: ManualClock
    ledger: MemoryLedger
    world: World
    key: ApiKey

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        *,
        world: World | None = None,
        key: ApiKey | None = None,
        platforms: Any = None,
        ledger: Ledger | None = None,
        templates: tuple[Template, ...] = (),
        gate: dict[str, Any] | None = None,
        **settings: Any,
    ) -> AsyncIterator[Local]:
        """Put a server together over a world in memory, and connect."""
        made, scoped = small_world()
        world, key = (made, scoped) if world is None else (world, key)
        clock, recorder = ManualClock(), MemoryRecorder()
        spent = ledger or MemoryLedger(clock=clock)
        application = build(
            server_settings(key, **settings),
            GateSettings.model_construct(**{"deployment": Deployment.STDIO, **(gate or {})}),
            recorder=recorder,
            ledger=spent,
            clock=clock,
            platforms=platforms or MemoryPlatforms(world),
            templates=templates,
        )
        async with application.running(), Client(application.mcp.server, cache=None) as client:
            yield cls(
                application=application,
                client=client,
                recorder=recorder,
                clock=clock,
                ledger=spent,
                world=world,
                key=key,
            )

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool."""
        return await called(self.client, tool, **arguments)

    async def approve(self, tool: str = DELETE, /, **arguments: Any) -> dict[str, Any]:
        """Run a preflight and return the arguments that confirm it."""
        arguments = arguments or {"clusterId": "prod-1"}
        return arguments | confirmation(await self.call(tool, **arguments))

    def rename(self, name: str) -> None:
        """Rename the only cluster, behind everyone's back."""
        ((identity, cluster),) = self.world.clusters.items()
        self.world.clusters[identity] = replace(cluster, display_name=name)


async def called(client: Client, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its structured content, with the text beside it."""
    answer = await client.call_tool(tool, arguments)
    assert isinstance(answer, CallToolResult)
    content = dict(answer.structured_content)
    assert content["refused"] is answer.is_error
    return content | {"shown": answer.content[0].text}


def confirmation(shown: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the second step for a preflight."""
    return {
        "confirm": True,
        "confirmTarget": shown["confirmTarget"],
        "confirmToken": shown["confirmToken"],
    }


def template(name: str = "orders_of", cluster: str = "10036201305668697000", **more: Any) -> dict:
    """Make a template's table."""
    return {
        "name": name,
        "description": "Orders of a customer.",
        "cluster": cluster,
        "database": "shop",
        "sql": "SELECT id FROM orders WHERE customer = :customer",
        "parameters": {"customer": {"type": "string"}},
        **more,
    }


def read_templates(*tables: dict[str, Any]) -> tuple[Template, ...]:
    """Read templates from their tables."""
    return templates_of({"template": list(tables)})


def secret(text: str) -> SecretStr:
    """Make a secret."""
    return SecretStr(text)


def token_free(text: str, *tokens: str) -> bool:
    """Say whether a text holds no token, and no part of one of these."""
    return not looks_like_token(text) and not any(
        part in text for token in tokens for part in parts_of(token)
    )


def events_text(recorder: Any) -> str:
    """Return everything that was recorded, as one text."""
    return "\n".join(event.model_dump_json() for event in recorder.events)
