"""What of a page can be taken away as evidence, and where the button for it stands."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from approvaltrail.dashboard import text
from approvaltrail.dashboard.desk import Desk
from approvaltrail.dashboard.markup import Markup
from approvaltrail.store.answers import EventFilter, ReuseFilter
from approvaltrail.store.labels import LabelKind


@dataclass(frozen=True, slots=True, kw_only=True)
class OfNonce:
    """Everything known of one nonce."""

    nonce: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfEvents:
    """The events of the range that a filter lets through."""

    wanted: EventFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class OfReuses:
    """The reuses of the range that a filter lets through, of one label where it is given."""

    wanted: ReuseFilter
    label: LabelKind | None = None


Exportable = OfNonce | OfEvents | OfReuses


def offer(desk: Desk, what: Exportable) -> None:
    """Offer an export of what the page shows, where the viewer's role may take it away."""
    from approvaltrail.dashboard.export import widgets  # noqa: PLC0415 - builds on this module

    widgets.offer(desk, what)


def lead(desk: Desk, said: Markup, what: Exportable) -> None:
    """Show what a page found, and beside it the export of just that."""
    with st.container(horizontal=True, vertical_alignment="center", key="at-lead"):
        text.show(said)
        offer(desk, what)
