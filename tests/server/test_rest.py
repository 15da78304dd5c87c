"""REST under /v1: the same tools behind the same gate, problem+json, callers' own keys."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.server.helpers import DELETE, confirmation, events_text, read_templates, secret, template
from tests.server.mariadb import _free_port as free_port

from approvaltrail.schemas import Reason
from approvaltrail.server.rest.problem_json import status_of
from approvaltrail.server.testing import RunningServer, running_server

TOKEN = "a static bearer token for tests, 48 bytes long.."
REST = {"rest": True, "rest_token": secret(TOKEN), "rest_tenant": "connector"}


async def posted(http: httpx.AsyncClient, tool: str, **arguments: Any) -> httpx.Response:
    """Call a tool over REST."""
    return await http.post(f"/tools/{tool}", json=arguments)


async def test_the_two_steps_over_rest() -> None:
    """G1, G9: preflight, confirm and refusal over REST, recorded with the static token's tenant."""
    async with running_server(**REST) as server, server.rest_for(TOKEN) as http:
        shown = (await posted(http, DELETE, clusterId="prod-1")).json()
        assert "works once" in shown["text"]
        refused = await posted(http, DELETE, clusterId="prod-1", confirm=True)
        assert refused.status_code == 428
        done = await posted(http, DELETE, clusterId="prod-1", **confirmation(shown))
        assert done.json()["result"]["deleted"] == "prod-1"
        assert done.headers["cache-control"] == "no-store"
        events = server.recorder.events
    assert events.types == ["issued", "refused", "accepted", "completed"]
    assert {event.tenant for event in events} == {"connector"}


async def test_a_refusal_is_a_problem_document() -> None:
    """G9: problem+json with the stable code, the next move, and whether a retry is safe."""
    async with running_server(**REST) as server, server.rest_for(TOKEN) as http:
        answer = await posted(http, DELETE, clusterId="prod-1", confirm=True)
        assert answer.headers["content-type"] == "application/problem+json"
        body = answer.json()
        assert body["type"] == "urn:approvaltrail:problem:missing_token"
        assert (body["status"], body["code"]) == (428, "missing_token")
        assert body["next_move"] == "run_preflight"
        assert body["nothing_executed"]
        assert not body["retry_safe"]
        assert body["event_id"] == server.recorder.events[0].event_id
        server.world.silent = True
        later = await posted(http, DELETE, clusterId="prod-1")
        assert (later.status_code, later.headers["retry-after"]) == (503, "5")


def test_every_reason_has_its_status() -> None:
    """G9: no refusal is left without a status, and each is an error."""
    assert all(400 <= status_of(reason) <= 503 for reason in Reason)


@pytest.mark.parametrize("credential", [None, "wrong", TOKEN[:-1], TOKEN + "x", ""])
async def test_nobody_comes_in_without_a_credential(credential: str | None) -> None:
    """A missing or wrong bearer is answered 401, and executes and records nothing."""
    async with running_server(**REST) as server, server.rest_for(credential or None) as http:
        answer = await posted(http, DELETE, clusterId="prod-1", confirm=True)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert server.recorder.events.types == []


async def test_a_callers_own_key_is_identity_and_authority() -> None:
    """B8: one process serves two callers, each with its own scoped key and nothing lent to it."""
    async with running_server(rest=True, own_keys=True) as server:
        other = server.world.add_cluster("other-1", organization="organisation-2")
        own = server.world.add_key(other)
        async with server.rest_for(own.text) as http:
            listing = (await posted(http, "tidb_list_clusters")).json()["result"]
            assert [item["displayName"] for item in listing["clusters"]] == ["other-1"]
            elsewhere = await posted(http, DELETE, clusterId=next(iter(server.world.clusters)))
            assert elsewhere.json()["code"] == "target_refused"
            shown = (await posted(http, DELETE, clusterId="other-1")).json()
        basic = httpx.BasicAuth(own.public, own.private)
        async with httpx.AsyncClient(base_url=f"{server.url}/v1", auth=basic) as http:
            done = await posted(http, DELETE, clusterId="other-1", **confirmation(shown))
            assert done.status_code == 200
        assert server.world.performed == [("delete_cluster", "other-1")]
        events = server.recorder.events
        assert events.types == ["issued", "accepted", "completed"]
        assert {event.tenant for event in events} == {"organisation-2"}
        assert {event.principal for event in events} == {f"key:{own.public}"}
        assert own.private not in events_text(server.recorder)


async def test_a_key_that_the_platform_refuses_opens_nothing() -> None:
    """B8: the platform decides whether a key is one; without its answer nobody comes in."""
    async with running_server(rest=True, own_keys=True) as server:
        for credential in (f"{server.key.public}:not-its-private-part", "PUBLIC9999:unknown-key"):
            async with server.rest_for(credential) as http:
                assert (await posted(http, "tidb_list_clusters")).status_code == 401
        server.world.silent = True
        async with server.rest_for(server.key.text) as http:
            assert (await posted(http, "tidb_list_clusters")).status_code == 401


async def test_mcp_takes_a_callers_own_key_too(server: RunningServer) -> None:
    """B7, B8: over MCP the greeting states what the caller's own key reaches."""
    async with running_server(own_keys=True) as running:
        wide = running.world.add_key(wide=True)
        running.world.add_cluster("other-1")
        for mode in ("auto", "legacy"):
            async with running.client_for(wide.text, mode=mode) as client:
                assert "WIDE: this key reaches 2 clusters" in client.instructions
            async with running.client_for(running.key.text, mode=mode) as client:
                assert "one cluster: 'prod-1'" in client.instructions


async def test_the_openapi_document_describes_the_tools() -> None:
    """The document needs no credential, and a template's tool asks for no cluster in it either."""
    templates = read_templates(template())
    settings = {**REST, "tidb_cluster_id": template()["cluster"]}
    async with running_server(templates=templates, **settings) as server:
        async with server.rest_for(None) as http:
            document = (await http.get("/openapi.json")).json()
        async with server.rest_for(TOKEN) as http:
            assert len((await http.get("/tools")).json()["tools"]) == len(document["paths"])
    assert document["openapi"].startswith("3.1")
    bodies = {
        path: item["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
        for path, item in document["paths"].items()
    }
    assert set(bodies["/tools/orders_of"]) == {"customer"}
    assert {"clusterId", "confirmToken"} <= set(bodies[f"/tools/{DELETE}"])


@pytest.mark.parametrize("body", [b"[]", b"{", b'"text"', b"\xff", b"[" * 5_000, b" " * 300_000])
async def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    """What is no JSON object, or too large, is answered 400 without repeating it."""
    async with running_server(**REST) as server, server.rest_for(TOKEN) as http:
        answer = await http.post(f"/tools/{DELETE}", content=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_body")


async def test_calls_are_counted_by_tool_and_answer_on_a_port_of_their_own() -> None:
    """P8: the counts are in no answer of the server's own port, and name no unknown tool."""
    port = free_port()
    async with (
        running_server(**REST, metrics_port=port) as server,
        server.rest_for(TOKEN) as http,
        httpx.AsyncClient(trust_env=False) as web,
    ):
        await http.post(f"/tools/{DELETE}", json={"clusterId": "prod-1"})
        await http.post(f"/tools/{DELETE}", json={"clusterId": "prod-1", "confirm": True})
        async with server.client_for(server.token("acme")) as client:
            await client.call_tool("at1.hostile", {})
        page = (await web.get(f"http://127.0.0.1:{port}/metrics")).text
        for answer in ("preflight", "missing_token"):
            assert (
                f'approvaltrail_server_calls_total{{answer="{answer}",tool="{DELETE}"}} 1' in page
            )
        assert 'answer="unknown_tool",tool="unknown"' in page
        assert "hostile" not in page
        assert (await web.get(f"{server.url}/metrics")).status_code != 200
    async with httpx.AsyncClient(trust_env=False) as web:
        with pytest.raises(httpx.ConnectError):
            await web.get(f"http://127.0.0.1:{port}/metrics")


async def test_health_is_answered_without_a_credential() -> None:
    """The process says that it lives, and whether the gate is open."""
    async with running_server(**REST) as server, httpx.AsyncClient(base_url=server.url) as http:
        assert (await http.get("/healthz")).json() == {"status": "alive"}
        assert (await http.get("/readyz")).json()["ready"]
        with server.recorder.unavailable():
            answer = await http.get("/readyz")
        assert (answer.status_code, answer.json()["ready"]) == (503, False)
        assert (await http.get("/v1/nothing")).json()["code"] == "no_such_path"
        assert (await http.post("/mcp", json={})).status_code == 401
