"""Serves the front end's own files from memory, and names early those that every page needs.

Streamlit's front end is many small files, and those that draw an element are asked for only once
the element is on its way. Named in a `Link` header beside the page, they come with the first ones.
"""

from __future__ import annotations

import mimetypes
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FILES: Final = Path(st.__file__).parent / "static" / "static"
_PREFIX: Final = "/static/"
_LASTING: Final = "public, max-age=31536000, immutable"
"""Names hold a hash of what is in them, so what has a name never changes."""
_DRAWN_EVERYWHERE: Final = ("Html", "Selectbox", "TextInput", "Checkbox", "Text")
_IMPORTED: Final = re.compile(r"""(?:from|import)["']\./([\w.-]+\.js)["']""")


class Assets:
    """ASGI middleware that answers for the front end's files and adds the header to pages."""

    def __init__(self, app: ASGIApp, *, base_path: str) -> None:
        self._app = app
        self._prefix = base_path + _PREFIX
        self._known = {
            str(one.relative_to(_FILES)): one for one in _FILES.rglob("*") if one.is_file()
        }
        self._read: dict[str, Response] = {}
        self._link = ", ".join(
            f"<{self._prefix}js/{name}>; rel=modulepreload"
            for name in drawn_everywhere(_FILES / "js")
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer for a file, or pass on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = scope["path"].removeprefix(self._prefix)
        if scope["method"] == "GET" and name in self._known and name != scope["path"]:
            await self._file(name)(scope, receive, send)
            return

        async def with_link(message: Message) -> None:
            if message["type"] == "http.response.start" and self._link:
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    headers["link"] = self._link
            await send(message)

        await self._app(scope, receive, with_link)

    def _file(self, name: str) -> Response:
        """Return a file as it is sent; read once, and no more files than the front end has."""
        if name not in self._read:
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            content = self._known[name].read_bytes()
            lasting = {"cache-control": _LASTING}
            self._read[name] = Response(content, media_type=kind, headers=lasting)
        return self._read[name]


def drawn_everywhere(folder: Path) -> list[str]:
    """Return the files that the elements on every page need and the page itself does not name.

    Where a release of Streamlit calls them otherwise there are none, and they come when asked for.
    """
    page = (folder.parents[1] / "index.html").read_text("utf-8")
    first = [one.name for kind in _DRAWN_EVERYWHERE for one in sorted(folder.glob(f"{kind}.*.js"))]
    found: dict[str, None] = {}
    while first:
        name = first.pop(0)
        if name in found or name in page or not (folder / name).is_file():
            continue
        found[name] = None
        first += _IMPORTED.findall((folder / name).read_text("utf-8"))
    return list(found)
