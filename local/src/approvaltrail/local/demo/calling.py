"""Calls of the server's tools, as MCP clients make them: over streamable HTTP, in two steps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

from approvaltrail.local.demo.people import Person, Wish
from approvaltrail.local.demo.world import DemoWorld
from approvaltrail.schemas.token_shape import nonce_in

_TIMEOUT_SECONDS: Final = 60
_TOKENS_REMEMBERED: Final = 100_000
_Place = tuple[str, str, str]


class DemoCallError(Exception):
    """The server answered a call of the demonstration as it should not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A preflight was shown and a token issued."""

    token: str = field(repr=False)
    target: str | None
    nonce: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """The token was accepted and the work has ended, well or not."""

    succeeded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnedDown:
    """The call was refused, and nothing was executed."""

    code: str
    recorded: bool


Answer = Shown | Executed | TurnedDown
_REPLAYED: Final = "already_used"


class Calls:
    """MCP clients of one server: one for each credential, address and client's name.

    Enter it in the task that leaves it; calls may come from any task.
    """

    def __init__(self, url: str, world: DemoWorld) -> None:
        self._url = url
        self._world = world
        self._clients: dict[_Place, asyncio.Future[Client]] = {}
        self._targets: dict[str, str | None] = {}
        self._closing = asyncio.Event()
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._closing.set()
        await self._group.__aexit__(kind, error, where)

    async def preflight(self, wish: Wish, person: Person) -> Answer:
        """Ask what would happen."""
        answer = _read(await self._call(wish.tool, wish.arguments, person))
        if isinstance(answer, Shown):
            self._targets[answer.token] = answer.target
            if len(self._targets) > _TOKENS_REMEMBERED:
                del self._targets[next(iter(self._targets))]
        return answer

    async def confirm(self, wish: Wish, token: str | None, person: Person) -> Answer:
        """Ask for the execution."""
        arguments: dict[str, Any] = {**wish.arguments, "confirm": True}
        if token is not None:
            arguments["confirmToken"] = token
            arguments["confirmTarget"] = self._targets.get(token) or ""
        return _read(await self._call(wish.tool, arguments, person))

    async def _call(
        self, tool: str, arguments: Mapping[str, Any], person: Person
    ) -> Mapping[str, Any]:
        client = await self._client(person)
        result = await client.call_tool(tool, dict(arguments))
        content = result.structured_content
        if not isinstance(content, Mapping):
            raise DemoCallError(f"{tool} answered without structured content")
        return content

    async def _client(self, person: Person) -> Client:
        place = (person.principal, person.address, person.client)
        if place not in self._clients:
            self._clients[place] = asyncio.get_running_loop().create_future()
            self._group.create_task(self._connected(person, self._clients[place]))
        return await asyncio.shield(self._clients[place])

    def _credential(self, person: Person) -> str:
        return self._world.key(person.tenant, person.principal).text

    async def _connected(self, person: Person, made: asyncio.Future[Client]) -> None:
        """Keep one connection until all are closed: a client is left where it was entered."""
        try:
            async with _connection(self._url, person, self._credential(person)) as client:
                made.set_result(client)
                await self._closing.wait()
        except Exception as error:
            if made.done():
                raise
            made.set_exception(error)


@contextlib.asynccontextmanager
async def _connection(url: str, person: Person, credential: str) -> AsyncIterator[Client]:
    headers = {
        "Authorization": f"Bearer {credential}",
        "X-Forwarded-For": person.address,
    }
    name, _, version = person.client.partition(" ")
    async with (
        httpx2.AsyncClient(headers=headers, timeout=_TIMEOUT_SECONDS, trust_env=False) as http,
        Client(
            streamable_http_client(f"{url}/mcp", http_client=http),
            client_info=Implementation(name=name, version=version),
            mode="legacy",  # opens a session, as most clients do: its id tells a retry from others
            cache=None,
        ) as client,
    ):
        yield client


def _read(content: Mapping[str, Any]) -> Answer:
    token = content.get("confirmToken")
    if isinstance(token, str):
        nonce = nonce_in(token)
        if nonce is None:
            raise DemoCallError("a preflight's token holds no nonce")
        return Shown(token=token, target=content.get("confirmTarget"), nonce=nonce)
    if not content.get("refused"):
        return Executed(succeeded=True)
    code = str(content["code"])
    if content.get("token_spent") and code != _REPLAYED:  # the work began and came to nothing
        return Executed(succeeded=False)
    return TurnedDown(code=code, recorded=content.get("event_id") is not None)
