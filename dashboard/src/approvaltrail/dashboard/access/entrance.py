"""What the entry script asks of this package: the viewer of a run, or a page that says why not."""

from __future__ import annotations

from typing import Final

import streamlit as st

from approvaltrail.dashboard import pieces, text
from approvaltrail.dashboard.access.identity import Identity, current_identity, sign_in_href
from approvaltrail.dashboard.access.settings import AccessSettings
from approvaltrail.dashboard.access.viewer import Viewer
from approvaltrail.dashboard.markup import element, joined
from approvaltrail.dashboard.settings import DashboardSettings

LEAVES: Final = "at-leaves"
"""Marks a link that leaves the pages: it is followed by the browser, never in place."""


def enter(settings: DashboardSettings, page: str) -> Identity:
    """Return who looks, or draw why nobody may; asked on every run and by every fragment.

    Raises:
        SettingsError: a setting of the access has no usable value.
    """
    identity = current_identity(AccessSettings.from_environment(), settings.scope())
    if identity.viewer is None:
        href = sign_in_href("" if page == "overview" else page)
        link = element("a", "Sign in", href=href, class_=LEAVES)
        pieces.empty(identity.title, identity.reason, " ", link)
    return identity


def badge(viewer: Viewer) -> None:
    """Show below the menu who looks and as what; nothing where there is no sign-in."""
    if viewer.subject is None:
        return
    tenant = viewer.scope.tenant
    said = joined(
        element("div", "Signed in as ", element("bdi", viewer.principal)),
        element("div", viewer.role.value, f" · tenant {tenant}" if tenant else " · all tenants"),
        element("a", "Sign out", href="signout", class_=LEAVES),
    )
    with st.sidebar:
        text.show(element("div", said, class_="at-small at-viewer"))
