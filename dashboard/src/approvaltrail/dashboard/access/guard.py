"""Nobody reaches pages, data or downloads without a session; what nobody needs is closed to all.

ASGI middleware before everything else. Open to all are the health check, the sign-in itself, and
the front end's own scripts, fonts and styles, which are the same for everybody and on PyPI.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from approvaltrail.dashboard.access.session import SESSION_COOKIE
from approvaltrail.dashboard.access.viewer import viewer_of
from approvaltrail.dashboard.errors import AccessRefusedError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from approvaltrail.dashboard.access.sign_in import SignIn

_CLOSED: Final = ("/_stcore/agent", "/_stcore/upload_file", "/_stcore/metrics")
"""Streamlit's ways to drive an app by HTTP, to upload, and to read its metrics."""
_OPEN: Final = ("/_stcore/health", "/signin", "/oauth2callback", "/signout", "/favicon.png")
_ASSETS: Final = "/static/"
_NOT_ALLOWED: Final = 1008
"""WebSocket close code for a broken policy (RFC 6455 §7.4.1)."""


class Guard:
    """Lets through whoever may look."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        base_path: str,
        sign_in: SignIn | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._app = app
        self._base_path = base_path
        self._sign_in = sign_in
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        answer = self._answer(HTTPConnection(scope))
        if answer is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _NOT_ALLOWED})
        else:
            await answer(scope, receive, send)

    def _answer(self, asked: HTTPConnection) -> Response | None:
        path = asked.scope["path"].removeprefix(self._base_path)
        if path.startswith(_CLOSED):
            return PlainTextResponse("There is nothing here.", status_code=404)
        if self._sign_in is None or path in _OPEN or path.startswith(_ASSETS):
            return None
        claims = self._sign_in.sessions.open(asked.cookies.get(SESSION_COOKIE))
        if claims is None or claims.expires_at <= self._clock():
            # A page that is open when its session ends connects again to be told so.
            ended = claims is not None and asked.scope["type"] == "websocket"
            return None if ended else self._sent_to_sign_in(asked)
        try:
            viewer_of(claims, self._sign_in.settings, self._sign_in.scope)
        except AccessRefusedError as error:
            return self._sign_in.refused(error)
        return None

    def _sent_to_sign_in(self, asked: HTTPConnection) -> Response:
        if "text/html" not in asked.headers.get("accept", ""):
            return PlainTextResponse("Sign in first.", status_code=401)
        query = asked.scope["query_string"].decode("latin-1")
        target = asked.scope["path"] + (f"?{query}" if query else "")
        return RedirectResponse(f"{self._base_path}/signin?to={quote(target, safe='')}", 303)
