"""Secrets stay out of events and logs, whatever place a caller puts them in."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest
import structlog
from tests.server.helpers import DELETE, called, confirmation, events_text, secret, token_free

from approvaltrail.gate import scrub_secrets
from approvaltrail.server.log import configure_logging
from approvaltrail.server.testing import running_server
from approvaltrail.server.testing.running import SECRET

REST_TOKEN = "a static bearer token for tests, 48 bytes long.."


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Give every log line of the process, at level debug, as the server would write it."""
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    configure_logging(scrub_secrets([SECRET.encode(), REST_TOKEN.encode()]), level="DEBUG")
    for name in ("mcp.server", "httpx", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    for name in ("mcp.client", "httpx2", "httpcore2"):  # the test's own client
        logging.getLogger(name).setLevel(logging.WARNING)
    yield written
    root.handlers[:], _ = before
    root.setLevel(before[1])
    structlog.reset_defaults()


async def test_a_token_stands_nowhere_but_in_its_answer(logs: io.StringIO) -> None:
    """S-09, S-11: a token in every place a caller controls is in no event and in no log line."""
    settings = {"rest": True, "rest_token": secret(REST_TOKEN)}
    async with running_server(**settings) as server:
        bearer = server.token("acme")
        async with server.client_for(bearer) as client:
            shown = await called(client, DELETE, clusterId="prod-1")
        token = shown["confirmToken"]
        headers = {
            "User-Agent": f"agent {token}",
            "X-Request-ID": token,
            "traceparent": token,
            "X-Forwarded-For": token,
            "Mcp-Session-Id": token,
            "Referer": f"https://example.org/?t={token}",
        }
        async with server.rest_for(REST_TOKEN, headers=headers) as http:
            for place in (
                {"clusterId": token},
                {"clusterId": "prod-1", "confirm": True, "confirmTarget": token},
                {"clusterId": token, "confirm": True, "confirmToken": token},
                {"clusterId": "prod-1", "confirm": True, "confirmToken": token + "x"},
                {"clusterId": "prod-1", "confirm": True, "confirmToken": token.replace(".", "..")},
                {"clusterId": [token], "confirm": True, "confirmToken": [token]},
                {token: token},
            ):
                answer = await http.post(f"/tools/{DELETE}?t={token}", json=place)
                assert answer.status_code >= 400
                assert token not in answer.text
            assert (await http.post(f"/tools/{token}", json={})).status_code == 404
        headers.pop("Mcp-Session-Id")
        async with server.client_for(bearer, headers=headers, name=f"client {token}") as client:
            await called(client, DELETE, clusterId="prod-1", **confirmation(shown))
            await client.call_tool(token, {})
        recorded = events_text(server.recorder)
    assert server.recorder.events.types.count("accepted") == 1
    assert server.recorder.scrubbed_values > 0
    for text in (recorded, logs.getvalue()):
        assert token_free(text, token)
        for credential in (bearer, REST_TOKEN, SECRET, server.key.private):
            assert credential not in text
    assert "agent [token removed]" in recorded


async def test_what_is_harmless_stays(logs: io.StringIO) -> None:
    """S-10: of four fields the credential goes, and the three others are there."""
    structlog.get_logger().info(
        "probe", tool=DELETE, credential=REST_TOKEN, cluster="prod-1", seconds=7
    )
    logging.getLogger("uvicorn.error").warning("a line with %s in it", SECRET)
    lines = list(map(json.loads, logs.getvalue().splitlines()))
    first = next(line for line in lines if line["event"] == "probe")
    second = next(line for line in lines if line["event"].startswith("a line with"))
    assert (first["tool"], first["cluster"], first["seconds"]) == (DELETE, "prod-1", 7)
    assert first["credential"] == "[secret removed]"
    assert second["event"] == "a line with [secret removed] in it"


def test_a_librarys_own_handler_writes_nothing_past_the_scrubber(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S-09: what a library attached to its logger before is gone once logging is configured."""
    written, past = io.StringIO(), io.StringIO()
    library = logging.getLogger("a.library.with.handlers")
    library.addHandler(logging.StreamHandler(past))
    library.propagate = False
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", written)
        root = logging.getLogger()
        before = (list(root.handlers), root.level)
        configure_logging(scrub_secrets([SECRET.encode()]))
        library.warning("a line with %s in it", SECRET)
        root.handlers[:], _ = before
        root.setLevel(before[1])
        structlog.reset_defaults()
    assert past.getvalue() == ""
    assert "a line with [secret removed] in it" in written.getvalue()


async def test_a_callers_own_key_is_in_no_event(logs: io.StringIO) -> None:
    """S-09: a platform key that its holder also puts into headers is recorded as a keyed hash."""
    async with running_server(own_keys=True) as server:
        own = server.key
        headers = {"User-Agent": f"agent {own.text}", "X-Request-ID": own.private}
        async with server.client_for(own.text, headers=headers, name=own.private) as client:
            await called(client, DELETE, clusterId="prod-1")
        (event,) = server.recorder.events
        recorded = events_text(server.recorder)
    assert len(event.credential_id) == 32
    assert own.private not in recorded + logs.getvalue()
