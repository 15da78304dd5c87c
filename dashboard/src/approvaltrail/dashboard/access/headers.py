"""Security headers on everything that is served.

The content policy is as tight as Streamlit allows. Its styles are written into the page by
script, hence 'unsafe-inline' for styles alone. Scripts come from here only, those that stand in the
page are named by their hashes, and none is made from text.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import streamlit as st
from starlette.datastructures import MutableHeaders

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_INLINE_SCRIPT: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_LASTING: Final = "/static/"
"""Names with a hash in them, the same for everybody: the only thing that browsers may keep."""


def content_policy(page: bytes, *scripts: str) -> str:
    """Return the content policy for a page: its inline scripts run, those named, and no others."""
    digests = (hashlib.sha256(script).digest() for script in _INLINE_SCRIPT.findall(page))
    inline = (f"'sha256-{base64.b64encode(one).decode()}'" for one in digests)
    named = "".join(f" {one}" for one in (*inline, *scripts))
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self'{named}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "worker-src 'self' blob:",
            "manifest-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def front_page() -> bytes:
    """Return the page into which Streamlit draws."""
    return (Path(st.__file__).parent / "static" / "index.html").read_bytes()


class SecurityHeaders:
    """ASGI middleware that adds the headers to every answer."""

    def __init__(self, app: ASGIApp, *, base_path: str, policy: str, https: bool) -> None:
        self._app = app
        self._lasting = base_path + _LASTING
        self._headers = {
            "content-security-policy": policy,
            "x-content-type-options": "nosniff",
            "x-frame-options": "DENY",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
            "x-robots-tag": "noindex, nofollow",
        }
        if https:
            self._headers["strict-transport-security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and add the headers on the way back."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        kept = scope["path"].startswith(self._lasting)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
                if not kept or message["status"] >= 400:  # noqa: PLR2004 - errors are not assets
                    headers["cache-control"] = "no-store"
            await send(message)

        await self._app(scope, receive, with_headers)
