"""The entry script that Streamlit runs: menu, controls, status line, and the page below.

Every run of a page is answered from the URL and the store; nothing else is remembered.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NoReturn

import streamlit as st

from approvaltrail.dashboard import controls, pieces, status, text
from approvaltrail.dashboard.access import entrance
from approvaltrail.dashboard.access.identity import Identity
from approvaltrail.dashboard.access.viewer import Viewer
from approvaltrail.dashboard.data import Answers
from approvaltrail.dashboard.desk import Desk, Page
from approvaltrail.dashboard.errors import DashboardError
from approvaltrail.dashboard.markup import element
from approvaltrail.dashboard.settings import DashboardSettings
from approvaltrail.dashboard.view import Choice
from approvaltrail.dashboard.views import (
    events,
    ledger,
    overview,
    pipeline,
    refusals,
    replays,
    trail,
)
from approvaltrail.schemas.errors import SettingsError
from approvaltrail.store.errors import StoreError

PAGES: Final[dict[str, tuple[str, Page, bool]]] = {
    "overview": ("Overview", overview.show, True),
    "replays": ("Replays", replays.show, False),
    "trail": ("Trail", trail.show, False),
    "refusals": ("Refusals", refusals.show, False),
    "events": ("Events", events.show, False),
    "ledger": ("Ledger", ledger.show, True),
    "pipeline": ("Pipeline", pipeline.show, True),
}
"""Path → title, what draws it, and whether it looks again by itself."""


def run() -> None:
    """Draw one run of whatever page the URL names."""
    st.set_page_config(page_title="Approval Trail", page_icon="🔏", layout="wide")
    text.stylesheet()
    text.behaviour()
    try:
        settings = DashboardSettings.from_environment()
    except SettingsError as error:
        _stop("The dashboard is not set up", str(error))
    pages = {path: _streamlit_page(path, settings) for path in PAGES}
    current = st.navigation(list(pages.values()))
    viewer = _enter(settings, current.url_path or "overview").viewer
    if viewer is None:
        st.stop()
    entrance.badge(viewer)
    live = any(current == pages[path] for path, (_, _, again) in PAGES.items() if again)
    text.show(element("h1", current.title, class_="at-title"))
    tenants = None if viewer.scope.tenant is not None else _tenants_for(settings, viewer)
    refresh = timedelta(seconds=settings.refresh_seconds) if live else None
    choice = controls.choose(tenants=tenants, refresh=refresh)
    st.session_state["at-choice"] = choice
    _lead_to_trail(pages, current)
    current.run()
    controls.share(current.url_path or "overview", choice.at(datetime.now(UTC)))


def _tenants_for(settings: DashboardSettings, viewer: Viewer) -> controls.Tenants:
    """Return what names the tenants that may be chosen; a StoreError of it is the caller's."""

    def tenants(span: Choice) -> tuple[str, ...]:
        answers = Answers.of(settings, viewer)
        return answers.tenants(span.at(datetime.now(UTC)).time_range)

    return tenants


def _streamlit_page(path: str, settings: DashboardSettings) -> st.Page:
    title, page, live = PAGES[path]

    def draw() -> None:
        _draw(path, page, settings)

    def draw_again_and_again() -> None:
        paused = _choice().paused
        st.fragment(draw, run_every=None if paused else settings.refresh_seconds)()

    drawn = draw_again_and_again if live else draw
    return st.Page(drawn, title=title, url_path=path, default=path == "overview")


def _choice() -> Choice:
    choice: Choice = st.session_state["at-choice"]
    return choice


def _draw(path: str, page: Page, settings: DashboardSettings) -> None:
    identity = _enter(settings, path)  # a page that looks again by itself asks again, too
    if identity.viewer is None:
        return
    choice = _choice()
    view = choice.at(datetime.now(UTC))
    problem = choice.problem()
    # Drawn last in its place on top: how complete the store is takes longer to tell than the rows.
    line = st.container(key="at-status-line")
    try:
        everything = Answers.of(settings, identity.viewer, identity.key)
        desk = Desk(settings=settings, everything=everything, view=view, viewer=identity.viewer)
        if problem is not None:
            text.show(pieces.note(problem))
        if controls.unreadable_token():
            pieces.empty("No nonce in that token", "What was pasted looks like a token that was "
                         "cut or altered. Paste it whole, or its nonce.")  # fmt: skip
        _draw_page(page, desk)
        with line:
            status.show(desk)
    except StoreError as error:
        with line:
            text.show(status.unreachable())
        pieces.empty("The store did not answer", str(error))


def _draw_page(page: Page, desk: Desk) -> None:
    try:
        page(desk)
    except DashboardError as error:
        pieces.empty("Not for your role", f"{error}.")


def _lead_to_trail(pages: dict[str, st.Page], current: st.Page) -> None:
    """Open the trail of a nonce that the URL or the box names, from any page."""
    nonce = controls.asked_nonce()
    if nonce is None and current != pages["trail"]:
        nonce = st.query_params.get("nonce")
    if nonce:
        st.switch_page(pages["trail"], query_params=controls.released() | {"nonce": nonce})


def _enter(settings: DashboardSettings, path: str) -> Identity:
    try:
        return entrance.enter(settings, path)
    except SettingsError as error:
        _stop("The dashboard is not set up", str(error))


def _stop(title: str, explanation: str) -> NoReturn:
    pieces.empty(title, explanation)
    st.stop()


if __name__ == "__main__":
    run()
