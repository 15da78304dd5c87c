"""A server on a free port of the loopback, with clients that are connected to it.

```python
async with running_server() as server, server.client_for(server.token("acme")) as client:
    await client.call_tool("tidb_delete_cluster", {"clusterId": "prod-1"})
```
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import httpx2
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation
from pydantic import SecretStr
from starlette.applications import Starlette

from approvaltrail.gate import Clock, Deployment, GateSettings, Ledger, LedgerKind
from approvaltrail.producer.testing import MemoryRecorder
from approvaltrail.schemas import EventRecorder, PrincipalKind
from approvaltrail.server.application import Application
from approvaltrail.server.assembly import build
from approvaltrail.server.auth.book import CallerBook
from approvaltrail.server.auth.identity import Identity
from approvaltrail.server.platform.http import HttpPlatforms, PlatformAddresses
from approvaltrail.server.platform.protocol import Platforms
from approvaltrail.server.platform.values import ApiKey
from approvaltrail.server.settings import ServerSettings
from approvaltrail.server.templates import Template
from approvaltrail.server.testing.fake_api import fake_api
from approvaltrail.server.testing.world import World, small_world

START_SECONDS: Final = 15.0
SECRET: Final = "a secret for running servers in tests, 48 bytes.."
TENANTS: Final = ("acme", "globex")


class _Quiet(uvicorn.Server):
    """Leaves signals to the process that it serves in."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serving(app: Starlette, *, lifespan: bool = True) -> AsyncIterator[str]:
    """Serve an application on a free port of the loopback; give its URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    configuration = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        lifespan="on" if lifespan else "off",
        ws="none",
        timeout_graceful_shutdown=2,
    )
    server = _Quiet(configuration)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        async with asyncio.timeout(START_SECONDS):
            while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn has no event
                await asyncio.sleep(0.01)
        if task.done():
            await task
            raise RuntimeError("the server did not start; its log says why")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)
        listener.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server that serves, and what is behind it."""

    url: str
    application: Application
    recorder: EventRecorder
    world: World
    key: ApiKey
    """A key that is scoped to the world's first cluster."""
    tokens: Mapping[str, str] = field(repr=False)
    """A static token for each tenant."""

    def token(self, tenant: str) -> str:
        """Return the static token of a tenant's caller."""
        return self.tokens[tenant]

    @contextlib.asynccontextmanager
    async def client_for(
        self,
        credential: str | None,
        *,
        headers: Mapping[str, str] | None = None,
        name: str = "test-client",
        mode: str = "auto",
    ) -> AsyncIterator[Client]:
        """Give an MCP client that is connected over streamable HTTP with this credential."""
        async with contextlib.AsyncExitStack() as stack:
            http = await stack.enter_async_context(
                httpx2.AsyncClient(headers=_headers(credential, headers), timeout=30)
            )
            client = Client(
                streamable_http_client(f"{self.url}/mcp", http_client=http),
                client_info=Implementation(name=name, version="1"),
                mode=mode,
                cache=None,
            )
            yield await stack.enter_async_context(client)

    def rest_for(
        self, credential: str | None, *, headers: Mapping[str, str] | None = None
    ) -> httpx.AsyncClient:
        """Return an HTTP client for the REST surface; close it as a context manager."""
        return httpx.AsyncClient(
            base_url=f"{self.url}/v1", headers=_headers(credential, headers), timeout=30
        )


def _headers(credential: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    bearer = {} if credential is None else {"Authorization": f"Bearer {credential}"}
    return {**bearer, **(headers or {})}


@contextlib.asynccontextmanager
async def running_server(  # noqa: PLR0913 - each is optional
    *,
    recorder: EventRecorder | None = None,
    ledger: Ledger | None = None,
    clock: Clock | None = None,
    world: World | None = None,
    key: ApiKey | None = None,
    platforms: Platforms | None = None,
    identities: Mapping[str, Identity] | None = None,
    templates: tuple[Template, ...] = (),
    gate_settings: GateSettings | None = None,
    **settings: Any,
) -> AsyncIterator[RunningServer]:
    """Serve streamable HTTP and REST on a free port of the loopback.

    Args:
        recorder: where events go; by default memory. A producer is started and closed.
        ledger: where nonces are spent; by default a SQLite file that lives as long as the server.
        clock: the gate's clock.
        world: the platform's state; by default one cluster, `prod-1`.
        key: the server's platform key in that world.
        platforms: the platform; by default the HTTP client against the world's API.
        identities: callers by token; by default one for each of `TENANTS`.
        templates: SQL templates.
        gate_settings: the gate's settings; by default remote and writable.
        settings: fields of `ServerSettings`.
    """
    made, scoped = small_world()
    world, key = (made, scoped) if world is None else (world, key)
    if key is None:
        raise ValueError("a world of your own needs a key of it")
    tokens = {tenant: _token(tenant) for tenant in TENANTS}
    known = identities or {token: _identity(tenant) for tenant, token in tokens.items()}
    sink = recorder or MemoryRecorder(service="tidb-mcp")
    with tempfile.TemporaryDirectory() as folder:
        application = build(
            server_settings(key, **settings),
            gate_settings or remote_gate(Path(folder) / "tokens.db"),
            recorder=sink,
            ledger=ledger,
            clock=clock,
            platforms=platforms or platforms_of(world),
            identifier=CallerBook.of_tokens(known),
            templates=templates,
        )
        async with serving(application.http()) as url:
            yield RunningServer(
                url=url,
                application=application,
                recorder=sink,
                world=world,
                key=key,
                tokens=tokens,
            )
        application.gate.close()


def platforms_of(world: World) -> HttpPlatforms:
    """Return the HTTP client of a world's API, without a port between them."""
    addresses = addresses_at("http://platform.test")
    return HttpPlatforms(addresses, transport=httpx.ASGITransport(app=fake_api(world)))


def addresses_at(url: str) -> PlatformAddresses:
    """Return the addresses of a fake API that is served at this URL."""
    return PlatformAddresses(
        projects=f"{url}/api/v1beta", clusters=f"{url}/v1beta1", identities=f"{url}/v1beta1"
    )


def server_settings(key: ApiKey | None, **values: Any) -> ServerSettings:
    """Make settings from defaults and these values, whatever the environment says."""
    own = {} if key is None else {
        "platform_public_key": key.public,
        "platform_private_key": SecretStr(key.private),
    }  # fmt: skip
    return ServerSettings.model_construct(**{**own, **values})


def remote_gate(token_store: Path, **values: Any) -> GateSettings:
    """Make the settings of a writable remote that is its only process, with a SQLite ledger."""
    return GateSettings.model_construct(
        **{
            "confirm_secret": SecretStr(SECRET),
            "deployment": Deployment.REMOTE,
            "ledger": LedgerKind.SQLITE,
            "token_store": token_store,
            "single_process": True,
            **values,
        }
    )


def _token(tenant: str) -> str:
    return hashlib.sha256(f"a static token for {tenant}".encode()).hexdigest()


def _identity(tenant: str) -> Identity:
    return Identity(
        tenant=tenant, principal=f"ana@{tenant}.example", principal_kind=PrincipalKind.USER
    )
