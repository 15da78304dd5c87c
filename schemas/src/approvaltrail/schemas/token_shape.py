"""What a confirmation token looks like, so that no text that looks like one is ever recorded.

The format is the gate's: a version prefix, the payload and its MAC, each in unpadded base64url
and joined by dots. The shape stands in the contract because every field of an event is held to it.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Final

from approvaltrail.schemas import bounds

if TYPE_CHECKING:
    from collections.abc import Iterable

TOKEN_PREFIX: Final = "at1"
"""Version of the token format; it is part of what the MAC covers."""

TOKEN_LIKE: Final = re.compile(
    r"\bat\d+\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)?"  # ours, of any version, cut or whole
    r"|[A-Za-z0-9_-]{40,}={0,2}\.[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])",  # payload and 256-bit MAC
)
"""Matches a whole token, one without its MAC, and a payload with a MAC under any prefix."""

REPLACEMENT: Final = "[token removed]"
_MINIMUM_PART: Final = 16
_SHORTEST: Final = len(TOKEN_PREFIX) + 1 + _MINIMUM_PART


def looks_like_token(text: str) -> bool:
    """Say whether any part of the text has a token's shape."""
    return len(text) >= _SHORTEST and "." in text and TOKEN_LIKE.search(text) is not None


def without_tokens(text: str, parts: Iterable[str] = ()) -> str:
    """Replace what looks like a token, and every given part of the token in hand, in the text."""
    found = [part for part in parts if len(part) >= _MINIMUM_PART and part in text]
    if found:  # whole tokens first: one whose payload alone is taken out has no shape any more
        text = TOKEN_LIKE.sub(REPLACEMENT, text)
    for part in found:
        text = text.replace(part, REPLACEMENT)
    if len(text) < _SHORTEST or "." not in text:
        return text
    return TOKEN_LIKE.sub(REPLACEMENT, text)


def parts_of(token: str) -> tuple[str, ...]:
    """Return the token and those of its parts that are long enough to be worth hiding."""
    pieces = (token, *token.split("."))
    return tuple(piece for piece in pieces if len(piece) >= _MINIMUM_PART)


def nonce_in(text: str) -> str | None:
    """Return the nonce that a pasted token carries, None where none can be read.

    A token's payload is signed, not secret; the signature is not checked here.
    """
    for part in text.strip().split("."):
        try:
            payload = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        except (ValueError, RecursionError):
            continue
        nonce = payload.get("nonce") if isinstance(payload, dict) else None
        if isinstance(nonce, str) and 1 <= len(nonce) <= bounds.NONCE:
            return None if looks_like_token(nonce) else nonce
    return None
