"""Where a request came from, and how far that may be believed."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from tests.server.helpers import DELETE, called

from approvaltrail.schemas import PrincipalKind
from approvaltrail.server.addresses import ProxyHeader, TrustedProxies
from approvaltrail.server.auth import Identity
from approvaltrail.server.request import trace_id_of
from approvaltrail.server.testing import RunningServer, running_server
from approvaltrail.server.testing.running import remote_gate

PROXIES = TrustedProxies.parse(["10.0.0.0/8", "2001:db8::/32"])
BEARER = "a-bearer-of-forty-characters-and-no-more"
ANA = Identity(tenant="acme", principal="ana", principal_kind=PrincipalKind.USER)
CASES = {
    "no proxy is trusted with a lie": ("192.0.2.7", ["203.0.113.9"], "192.0.2.7", "peer"),
    "one proxy": ("10.0.0.1", ["203.0.113.9"], "203.0.113.9", "trusted_proxy"),
    "two proxies": ("10.0.0.1", ["203.0.113.9, 10.2.2.2"], "203.0.113.9", "trusted_proxy"),
    "a forged first hop": ("10.0.0.1", ["1.1.1.1, 203.0.113.9"], "203.0.113.9", "trusted_proxy"),
    "two headers": ("10.0.0.1", ["1.1.1.1", "203.0.113.9"], "203.0.113.9", "trusted_proxy"),
    "a port": ("10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9", "trusted_proxy"),
    "six": ("2001:db8::1", ["[2001:4860::8]:443"], "2001:4860::8", "trusted_proxy"),
    "mapped": ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9", "trusted_proxy"),
    "nothing forwarded": ("10.0.0.1", [], None, "unknown"),
    "no address forwarded": ("10.0.0.1", ["1.1.1.1, not-an-address"], None, "unknown"),
    "only proxies": ("10.0.0.1", ["10.3.3.3"], "10.3.3.3", "trusted_proxy"),
    "too many hops": ("10.0.0.1", [",".join(["203.0.113.9"] * 40)], None, "unknown"),
    "no peer": (None, ["203.0.113.9"], None, "unknown"),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_the_client_is_the_rightmost_hop_that_is_not_trusted(case: str) -> None:
    """The first hop from the right that is no trusted proxy is the client; the rest is hearsay."""
    peer, forwarded, client, source = CASES[case]
    origin = PROXIES.origin(peer, ProxyHeader.X_FORWARDED_FOR.hops(forwarded))
    assert (origin.client, origin.source.value) == (client, source)


@pytest.mark.parametrize(
    ("headers", "hops"),
    [
        (["for=203.0.113.9"], ["203.0.113.9"]),
        (["For=203.0.113.9;proto=http;by=10.0.0.1"], ["203.0.113.9"]),
        (["proto=http ; for=203.0.113.9"], ["203.0.113.9"]),
        (
            ['for="[2001:4860::8]:443", for="203.0.113.9:80"'],
            ["[2001:4860::8]:443", "203.0.113.9:80"],
        ),
        (["for=1.1.1.1, for=203.0.113.9", "for=10.2.2.2"], ["1.1.1.1", "203.0.113.9", "10.2.2.2"]),
        (["for=unknown, for=_hidden"], ["unknown", "_hidden"]),
        (["for=203.0.113.9, proto=https"], ["203.0.113.9", ""]),
        (['for="a, for=203.0.113.9"'], ["a, for=203.0.113.9"]),
        ([r'for="203.0.\113.9"'], ["203.0.113.9"]),
        (["for=203.0.113.9;;"], ["203.0.113.9"]),
        (['for="203.0.113.9'], []),
        (["for=2001:4860::8"], []),
        (["203.0.113.9"], []),
        ([], []),
    ],
)
def test_forwarded_is_read_as_its_standard_says(headers: list[str], hops: list[str]) -> None:
    """RFC 7239: pairs in any order and case, quoted texts whole; what is no list names nobody."""
    assert ProxyHeader.FORWARDED.hops(headers) == hops


@pytest.mark.parametrize("header", list(ProxyHeader))
async def test_the_header_that_the_proxies_do_not_write_is_not_read(header: ProxyHeader) -> None:
    """A client sends the other header through a proxy that ignores it: no word of it counts."""
    headers = {"X-Forwarded-For": "203.0.113.1", "Forwarded": "for=203.0.113.2"}
    async with (
        running_server(trusted_proxies="127.0.0.0/8", proxy_header=header) as server,
        server.client_for(server.token("acme"), headers=headers) as client,
    ):
        await called(client, DELETE, clusterId="prod-1")
        (event,) = server.recorder.events
    said = {ProxyHeader.X_FORWARDED_FOR: "203.0.113.1", ProxyHeader.FORWARDED: "203.0.113.2"}
    assert event.client_address == said[header]


async def test_a_credential_with_a_secret_of_its_own_keeps_its_name_over_a_rotation(
    tmp_path: Path,
) -> None:
    """Reuses before and after a rotation of CONFIRM_SECRET are seen to come from one credential."""

    async def name(confirm: str, own: str | None) -> str | None:
        gate = remote_gate(tmp_path / confirm, confirm_secret=SecretStr(confirm * 32))
        secret = None if own is None else SecretStr(own * 32)
        async with (
            running_server(
                gate_settings=gate, identities={BEARER: ANA}, credential_secret=secret
            ) as server,
            server.client_for(BEARER) as client,
        ):
            await called(client, DELETE, clusterId="prod-1")
            (event,) = server.recorder.events
        return event.credential_id

    assert await name("a", None) != await name("b", None)
    assert await name("a", "c") == await name("b", "c") != await name("b", "d")


async def test_a_peer_that_is_no_proxy_cannot_choose_its_address(server: RunningServer) -> None:
    """Over HTTP, X-Forwarded-For of an untrusted peer changes nothing."""
    headers = {"X-Forwarded-For": "203.0.113.9"}
    async with server.client_for(server.token("acme"), headers=headers) as client:
        await called(client, DELETE, clusterId="prod-1")
    (event,) = server.recorder.events
    assert (event.client_address, event.address_source.value) == ("127.0.0.1", "peer")


async def test_the_caller_is_taken_from_the_requests_context() -> None:
    """G10, G11: tenant, principal, addresses, client and trace stand in the event."""
    headers = {
        "X-Forwarded-For": "203.0.113.9",
        "X-Request-ID": "req-77",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    }
    async with (
        running_server(trusted_proxies="127.0.0.0/8") as server,
        server.client_for(server.token("acme"), headers=headers, name="agent-9") as client,
    ):
        await called(client, DELETE, clusterId="prod-1")
        (event,) = server.recorder.events
    assert (event.tenant, event.principal, event.principal_kind) == (
        "acme", "ana@acme.example", "user",
    )  # fmt: skip
    assert (event.peer_address, event.client_address) == ("127.0.0.1", "203.0.113.9")
    assert event.address_source == "trusted_proxy"
    assert (event.client_name, event.request_id) == ("agent-9 1", "req-77")
    assert event.trace_id == "0af7651916cd43dd8448eb211c80319c"
    assert event.credential_id
    assert event.credential_id not in server.token("acme")


async def test_a_session_stands_in_the_event(server: RunningServer) -> None:
    """In the era of sessions, events name theirs."""
    async with server.client_for(server.token("acme"), mode="legacy") as client:
        await called(client, DELETE, clusterId="prod-1")
    (event,) = server.recorder.events
    assert event.session_id


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
    ],
)
def test_a_traceparent_that_is_none_gives_no_trace(header: str | None) -> None:
    """W3C: all zeros, version ff and upper case are not valid."""
    assert trace_id_of(header) is None


async def test_a_session_is_closed_to_every_other_caller(server: RunningServer) -> None:
    """G10: who knows another tenant's session id is told that there is none."""
    async with server.client_for(server.token("acme"), mode="legacy") as client:
        await called(client, DELETE, clusterId="prod-1")
        session = server.recorder.events[0].session_id
        headers = {
            "Accept": "application/json, text/event-stream",
            "Mcp-Session-Id": session,
            "MCP-Protocol-Version": client.protocol_version,
        }
        listing = {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}
        statuses = {}
        for tenant in ("acme", "globex"):
            bearer = {"Authorization": f"Bearer {server.token(tenant)}"}
            async with httpx.AsyncClient(headers=headers | bearer) as http:
                answer = await http.post(f"{server.url}/mcp", json=listing)
                statuses[tenant] = answer.status_code
    assert statuses == {"acme": 200, "globex": 404}
