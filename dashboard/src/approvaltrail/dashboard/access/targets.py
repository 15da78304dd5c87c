"""Where a visitor goes after signing in: a page of ours, never another site.

RFC 9700 §4.11 (open redirectors): a target is rebuilt from what was understood of it, and what was
not understood leads to the front page.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlsplit

_LONGEST: Final = 2_000
"""A longer target does not fit a cookie; its page is kept and its filters are not."""
_PATH: Final = "/-._~"
_QUERY: Final = "=&%+-._~/:,@"


def safe_target(asked: str | None, base_path: str) -> str:
    """Return path and query of a page below the base path; the front page for all else."""
    home = f"{base_path}/"
    if not asked or any(ord(one) <= 0x20 or ord(one) == 0x7F for one in asked) or "\\" in asked:  # noqa: PLR2004
        return home
    if not asked.startswith("/"):
        asked = home + asked
    try:
        parts = urlsplit(asked)
    except ValueError:
        return home
    inside = parts.path.startswith(home) or parts.path == base_path
    if parts.scheme or parts.netloc or not inside or "//" in parts.path or ".." in parts.path:
        return home
    path = quote(parts.path or "/", safe=_PATH + "%")
    target = f"{path}?{quote(parts.query, safe=_QUERY)}" if parts.query else path
    return target if len(target) <= _LONGEST else path[:_LONGEST]
