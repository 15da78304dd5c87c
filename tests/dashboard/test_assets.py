"""The front end's files come from memory, may be kept for ever, and are named early."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
import streamlit
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route

from approvaltrail.dashboard.assets import Assets, drawn_everywhere

SCRIPTS = Path(streamlit.__file__).parent / "static" / "static" / "js"


@pytest.fixture
def client() -> httpx.AsyncClient:
    async def page(_: object) -> HTMLResponse:
        return HTMLResponse("<p>page</p>")

    async def other(_: object) -> PlainTextResponse:
        return PlainTextResponse("other")

    routes = [Route("/audit/page", page), Route("/{path:path}", other)]
    app = Starlette(routes=routes, middleware=[Middleware(Assets, base_path="/audit")])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")


async def test_a_page_names_the_files_that_it_will_need(client: httpx.AsyncClient) -> None:
    """Each is named below the base path, and is there, byte for byte, to be kept for ever."""
    link = (await client.get("/audit/page")).headers["link"]
    named = re.findall(r"<(/audit/static/js/[^>]+)>; rel=modulepreload", link)
    assert any("/Html." in one for one in named)
    for one in named:
        answer = await client.get(one)
        assert answer.content == (SCRIPTS / one.rpartition("/")[2]).read_bytes()
        assert "javascript" in answer.headers["content-type"]
        assert "immutable" in answer.headers["cache-control"]
    assert "link" not in (await client.get("/audit/other")).headers


@pytest.mark.parametrize(
    "path",
    ["/audit/static/../index.html", "/audit/static/", "/static/js/x.js", "/audit/static/%2e%2e/x"],
)
async def test_nothing_but_the_front_ends_files_is_answered(
    client: httpx.AsyncClient, path: str
) -> None:
    """Whatever else is asked for goes on to whoever serves it."""
    assert (await client.get(path)).text == "other"


def test_a_release_that_names_its_files_otherwise_names_none(tmp_path: Path) -> None:
    """Then they come when they are asked for, as before."""
    scripts = tmp_path / "static" / "js"
    scripts.mkdir(parents=True)
    (tmp_path / "index.html").write_text("<script src=first.js></script>")
    (scripts / "Page.abc.js").write_text('import"./gone.js";')
    assert drawn_everywhere(scripts) == []
    (scripts / "Html.abc.js").write_text('import{a}from"./part.js";import"./first.js"')
    (scripts / "part.js").write_text('import"./Html.abc.js"')
    assert drawn_everywhere(scripts) == ["Html.abc.js", "part.js"]
