"""The session cookie: what is kept of a sign-in, signed, and never more than a cookie holds.

It is the only memory of a sign-in: the server keeps no table of sessions that visitors could share
by mistake. Nothing in it is secret; a browser's scripts cannot read it all the same.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from itsdangerous import BadData, URLSafeSerializer, URLSafeTimedSerializer

from approvaltrail.dashboard.access.settings import AccessSettings
from approvaltrail.dashboard.access.viewer import Claims

SESSION_COOKIE: Final = "approvaltrail_session"
STATE_COOKIE: Final = "approvaltrail_signin_"
STATE_SECONDS: Final = 600
"""How long a visitor may take at the identity provider."""
_REMEMBERED_SECONDS: Final = 86_400
"""A session that has ended is still recognised for this long, so that a page can say so."""


class Sessions:
    """Seals and opens what browsers keep for us."""

    def __init__(self, key: str, settings: AccessSettings) -> None:
        # Another provider or client is another world: what it vouched for ends with it.
        world = f"{settings.oidc_issuer} {settings.oidc_client_id}"
        self._session = URLSafeSerializer(key, salt=f"session {world}")
        self._state = URLSafeTimedSerializer(key, salt=f"state {world}")
        self._path = settings.base_path or "/"
        self._secure = settings.cookies_secure

    def seal(self, claims: Claims, now: float) -> dict[str, Any]:
        """Return the arguments that set the session cookie."""
        age = max(1, int(claims.expires_at - now) + _REMEMBERED_SECONDS)
        return self._cookie(SESSION_COOKIE, self._session.dumps(asdict(claims)), age)

    def open(self, cookie: str | None) -> Claims | None:
        """Return what we signed, also after its end; None for anything else."""
        try:
            found = self._session.loads(cookie or "")
            return Claims(**found | {"roles": tuple(found["roles"])})
        except (BadData, TypeError, KeyError):
            return None

    def seal_state(self, state: str, kept: dict[str, str]) -> dict[str, Any]:
        """Return the arguments that set the cookie of one sign-in under way."""
        return self._cookie(state_cookie(state), self._state.dumps(kept), STATE_SECONDS)

    def open_state(self, cookie: str | None) -> dict[str, str] | None:
        """Return what was kept of a sign-in under way."""
        try:
            kept = self._state.loads(cookie or "", max_age=STATE_SECONDS)
        except BadData:
            return None
        return kept if isinstance(kept, dict) else None

    def gone(self, name: str) -> dict[str, Any]:
        """Return the arguments that remove a cookie."""
        return self._cookie(name, "", 0)

    def _cookie(self, name: str, value: str, max_age: int) -> dict[str, Any]:
        # Lax, not Strict: the way back from the identity provider comes from another site.
        return {
            "key": name,
            "value": value,
            "max_age": max_age,
            "path": self._path,
            "httponly": True,
            "secure": self._secure,
            "samesite": "lax",
        }


def state_cookie(state: str) -> str:
    """Name the cookie of a sign-in under way: tabs that sign in at once stay apart."""
    return STATE_COOKIE + "".join(one for one in state[:16] if one.isascii() and one.isalnum())
