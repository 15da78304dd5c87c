"""What people paste where a nonce is asked for: a nonce, or the whole token that came back."""

from __future__ import annotations

import sys
from typing import Final

import typer

from approvaltrail.schemas import bounds
from approvaltrail.schemas.token_shape import looks_like_token, nonce_in

_HINT: Final = "NONCE"
_LINE: Final = 16_384
"""No token is longer."""


def nonce_of(pasted: str) -> str:
    """Return the nonce in what was pasted, or on the first line of stdin for `-`.

    A token's payload is signed, not secret. The signature is not checked here: the trail says
    whether the nonce was ever verified.

    Raises:
        typer.BadParameter: there is none, or it is too long. The message never repeats a token.
    """
    text = (_line() if pasted == "-" else pasted).strip()
    if looks_like_token(text):
        found = nonce_in(text)
        if found is None:
            raise typer.BadParameter(
                "this looks like a token, but no nonce can be read from it: it may be cut short, "
                "or be none of ours; give the nonce that an event or a page shows",
                param_hint=_HINT,
            )
        return found
    if not 1 <= len(text) <= bounds.NONCE:
        raise typer.BadParameter(
            f"a nonce has 1 to {bounds.NONCE} characters, this has {len(text)}", param_hint=_HINT
        )
    return text


def _line() -> str:
    try:
        line = sys.stdin.readline(_LINE)
        line.encode()
    except UnicodeError:
        raise typer.BadParameter("stdin is not text in UTF-8", param_hint=_HINT) from None
    return line
