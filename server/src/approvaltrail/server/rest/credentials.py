"""The credential of a REST request: a bearer, or a platform key by HTTP Basic."""

from __future__ import annotations

import base64
import binascii

from starlette.requests import Request

MAXIMUM_CHARACTERS = 4_096


def credential_of(request: Request) -> str | None:
    """Return what the request presents; None where it presents nothing that can be read."""
    scheme, _, rest = request.headers.get("authorization", "").partition(" ")
    text = rest.strip()
    if not text or len(text) > MAXIMUM_CHARACTERS:
        return None
    match scheme.lower():
        case "bearer":
            return text
        case "basic":
            return _basic(text)
        case _:
            return None


def _basic(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
