"""The controls above every page: range, tenant, the box that finds a nonce, and the link to share.

They live in the entry script and are bound to the URL, so that they carry over pages and a link
repeats what was looked at. The box is not bound: a pasted token must never enter a URL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

import streamlit as st
from streamlit.runtime.state import get_session_state

from approvaltrail.dashboard import formats, text
from approvaltrail.dashboard.view import CUSTOM, DEFAULT, PRESETS, Choice, View
from approvaltrail.schemas import bounds
from approvaltrail.schemas.token_shape import looks_like_token, nonce_in
from approvaltrail.store.answers import TimeRange
from approvaltrail.store.errors import StoreError

FOUND: Final = "at-found"
"""Session state: the nonce that was just asked for."""
_BOUND: Final = ("range", "from", "to", "tenant")
_SHARE: Final = "at-share"
"""Session state: the place among the controls for the link to share."""
_BOUNDS: Final = "at-bounds"
"""Session state: the range that was shown last."""
NOT_FOUND: Final = "at-not-found"
"""Session state: a token was pasted from which no nonce can be read."""


def released() -> dict[str, str]:
    """Untie the controls from the URL and return what it said of them.

    Streamlit refuses to name a bound parameter in a change of page, and drops those not named. The
    next run ties them again, with what the new URL says.
    """
    said = {key: st.query_params[key] for key in _BOUND if key in st.query_params}
    with get_session_state().query_params() as parameters:
        for key in said:
            binding = parameters.get_binding_for_param(key)
            if binding is not None:
                parameters.unbind_widget(binding.widget_id)
    return said


Tenants = Callable[[Choice], Sequence[str]]
"""Gives the tenants to choose from in a range."""


def choose(*, tenants: Tenants | None, refresh: timedelta | None) -> Choice:
    """Draw the controls and return what they say.

    `tenants` is None where the viewer may see one tenant alone; `refresh` says how often the page
    looks again by itself, so that it can be held still, and is None where it never does.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", key="at-controls"):
        named = st.selectbox(
            "Range (UTC)",
            [*PRESETS, CUSTOM],
            index=list(PRESETS).index(DEFAULT),
            key="range",
            bind="query-params",
            on_change=_fill_bounds,
            filter_mode=None,
            width=120,
        )
        start, end = _bounds() if named == CUSTOM else ("", "")
        span = Choice(range_name=named or DEFAULT, start=start, end=end)
        tenant = "" if tenants is None else _tenant(tenants, span)
        st.text_input(
            "Find nonce",
            key="find",
            on_change=_find,
            placeholder="paste a nonce or a token",
            max_chars=16_384,
            autocomplete="off",
            width=250,
        )
        st.session_state[_SHARE] = st.container(width="content")
        paused = False
        if refresh is not None:
            paused = st.toggle("Pause refresh", key="pause", bind="query-params")
            text.plain("paused" if paused else f"⟳ every {formats.gap(refresh)}")
    return replace(span, tenant=tenant, paused=paused)


def share(page: str, view: View) -> None:
    """Draw the button that gives a link to exactly this, with absolute times and every filter."""
    st.session_state[_BOUNDS] = view.time_range
    filters = {
        key: value for key, value in st.query_params.items() if key not in (*_BOUND, "pause")
    }
    here = urlsplit(st.context.url or "")
    base = f"{here.scheme}://{here.netloc}{here.path.rpartition('/')[0]}"
    path = "./" if page == "overview" else page
    link = view.absolute_href(path, **filters).removeprefix("./")
    with st.session_state[_SHARE], st.popover("Share", width="content"):
        text.plain("A link that shows the same tomorrow:")
        text.copyable(f"{base}/{link}")
        bounds_ = view.time_range
        text.plain(f"{formats.instant(bounds_.start)} to {formats.instant(bounds_.end)} UTC")


def asked_nonce() -> str | None:
    """Return, once, the nonce that was typed into the box."""
    found: str | None = st.session_state.pop(FOUND, None)
    return found


def unreadable_token() -> bool:
    """Say, once, whether a token was pasted that holds no readable nonce."""
    return bool(st.session_state.pop(NOT_FOUND, False))


def _nonce_of(pasted: str) -> str | None:
    """Read the nonce from what was pasted: a nonce, or a whole token."""
    pasted = pasted.strip()
    if looks_like_token(pasted):
        return nonce_in(pasted)
    return pasted[: bounds.NONCE] or None


def _find() -> None:
    pasted = str(st.session_state.get("find") or "")
    st.session_state["find"] = ""  # a token does not stay in the session
    nonce = _nonce_of(pasted)
    if nonce is not None:
        st.session_state[FOUND] = nonce
    elif pasted.strip():
        st.session_state[NOT_FOUND] = True


def _bounds() -> tuple[str, str]:
    start = st.text_input(
        "From (UTC)",
        key="from",
        bind="query-params",
        placeholder="2026-03-08T06:00:00Z",
        max_chars=40,
        width=220,
    )
    end = st.text_input(
        "To (UTC)",
        key="to",
        bind="query-params",
        placeholder="2026-03-09T06:00:00Z",
        max_chars=40,
        width=220,
    )
    return start or "", end or ""


def _tenant(tenants: Tenants, span: Choice) -> str:
    chosen = str(st.session_state.get("tenant") or st.query_params.get("tenant") or "")
    try:
        names = tenants(span)
    except StoreError:  # said once, where the page would be
        names = ()
    tenant = st.selectbox(
        "Tenant",
        sorted({*names, chosen} - {""}),
        index=None,
        key="tenant",
        bind="query-params",
        placeholder="all",
        accept_new_options=True,
        width=170,
    )
    return (tenant or "")[: bounds.TENANT]


def _fill_bounds() -> None:
    """Let a range that is just chosen to be custom begin with what was shown."""
    shown = st.session_state.get(_BOUNDS)
    if st.session_state.get("range") == CUSTOM and isinstance(shown, TimeRange):
        st.session_state["from"] = formats.iso(shown.start)
        st.session_state["to"] = formats.iso(shown.end)
