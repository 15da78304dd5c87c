"""The viewer of the current run, from the cookie that the browser sent along.

Asked on every run, fragments too: a session that ended, or a role that the settings no longer know,
shows nothing more. Nothing of it is cached.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

import streamlit as st

from approvaltrail.dashboard.access.session import SESSION_COOKIE, Sessions
from approvaltrail.dashboard.access.settings import AccessSettings
from approvaltrail.dashboard.access.viewer import Viewer, local_viewer, viewer_of
from approvaltrail.dashboard.errors import AccessRefusedError
from approvaltrail.store.answers import TenantScope

SECRETS: Final = "approvaltrail"
SESSION_KEY: Final = "session_key"
"""Where the server leaves the sessions' key for the pages: in Streamlit's secrets, in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Either a viewer, or why there is none."""

    viewer: Viewer | None
    title: str = ""
    reason: str = ""
    key: bytes = b""
    """Under which addresses are masked."""


def current_identity(settings: AccessSettings, dashboard: TenantScope) -> Identity:
    """Say who looks now."""
    if not settings.sign_in:
        return Identity(viewer=local_viewer(dashboard))
    key = _key()
    if key is None:
        return Identity(
            viewer=None,
            title="Sign-in is set up, and this server does not ask for it",
            reason="Start the dashboard with python -m approvaltrail.dashboard.",
        )
    claims = Sessions(key, settings).open(st.context.cookies.get(SESSION_COOKIE))
    if claims is None or claims.expires_at <= time.time():
        return Identity(
            viewer=None,
            title="Your session has ended",
            reason="Sign in again: this page and all that was chosen on it come back.",
        )
    try:
        viewer = viewer_of(claims, settings, dashboard)
    except AccessRefusedError as error:
        return Identity(viewer=None, title="You may not look at this", reason=sentence(error))
    return Identity(viewer=viewer, key=hashlib.sha256(b"mask " + key.encode()).digest())


def sentence(error: Exception) -> str:
    """Write an error as a sentence of a page."""
    said = str(error)
    return f"{said[:1].upper()}{said[1:]}."


def sign_in_href(page: str) -> str:
    """Return the link that signs in and comes back to a page with the URL's query."""
    query = urlencode(st.query_params.to_dict(), quote_via=quote, safe="")
    return f"signin?to={quote(f'{page}?{query}' if query else page, safe='')}"


def _key() -> str | None:
    try:
        found = st.secrets[SECRETS][SESSION_KEY]
    except (KeyError, FileNotFoundError):
        return None
    return found if isinstance(found, str) and found else None
