"""Events: every event of the range, filtered; the filters are the URL, so a search is a link."""

from __future__ import annotations

from datetime import datetime

import streamlit as st

from approvaltrail.dashboard import (
    charts,
    event_table,
    exporting,
    filters,
    formats,
    layers,
    palette,
    pieces,
    text,
)
from approvaltrail.dashboard.desk import Desk
from approvaltrail.dashboard.markup import Markup, element, joined
from approvaltrail.schemas import bounds
from approvaltrail.schemas.events import EventType, NonceTrust, Outcome, Reason
from approvaltrail.store.answers import EventFilter, Histogram

_NAMES = {
    "text": "contains",
    "reason": "cause",
    "trust": "nonce",
}
"""How a filter is called on its chip, where that is not its name in the URL."""
_SHOWN = (*layers.OUTCOMES, EventType.COMPLETED)


def show(desk: Desk) -> None:
    """Draw the page."""
    wanted = _filters(desk)
    kept = _kept(wanted)
    offset = pieces.offset_in_url()
    span = desk.view.time_range
    desk.answers.soon(desk.answers.histogram, span, wanted)
    page = desk.answers.events(span, wanted, pieces.PAGE_ROWS, offset)
    desk.begin_status()
    total = formats.counted(page.total, "event")
    said = element("p", element("strong", total), ".", class_="at-lead")
    exporting.lead(desk, said, exporting.OfEvents(wanted=wanted))
    filters.chips(desk, "events", _NAMES, kept)
    if not page.events:
        filtered = any(kept.values()) or desk.view.tenant is not None
        clear = desk.view.href("events", tenant="")
        pieces.nothing_here(desk, "events", filtered=filtered, clear=clear)
        return
    found = desk.answers.histogram(span, wanted)
    text.show(_over_time(desk, found, kept))
    text.show(event_table.build("Events", page.events, desk.view))
    pieces.pager(desk, "events", page.total, len(page.events), offset, **kept)


def _over_time(desk: Desk, found: Histogram, kept: dict[str, str | None]) -> Markup:
    def zoom(start: datetime, end: datetime) -> str:
        return desk.view.between("events", start, end, **kept)

    drawn = [layer for layer in layers.by_outcome(found.series, _SHOWN) if any(layer.counts)]
    entries = [
        (
            pieces.sign(palette.sign_of(kind)),
            palette.sign_of(kind).tone,
            desk.view.href("events", **kept | {"type": kind}),
        )
        for kind in _SHOWN
        if any(layer.word == palette.sign_of(kind).word for layer in drawn)
    ]
    return joined(
        element("div", pieces.zoom_out(desk.view, "events", **kept), class_="at-beside"),
        charts.legend(entries),
        charts.columns("Events", drawn, found.bucket, desk.view.time_range, zoom),
    )


def _filters(desk: Desk) -> EventFilter:
    with st.container(horizontal=True, vertical_alignment="bottom", key="at-filters"):
        contains = filters.text_field("Contains", "text")
        event_type = filters.choice_field("Type", "type", EventType)
        reason = filters.choice_field("Cause", "reason", Reason)
        tool = filters.text_field("Tool", "tool", bounds.TOOL)
        principal = filters.text_field("Principal", "principal", bounds.PRINCIPAL)
    more = EventFilter(
        text=contains, event_type=event_type, reason=reason, tool=tool, principal=principal
    )
    return _more_filters(desk, more)


def _more_filters(desk: Desk, fewer: EventFilter) -> EventFilter:
    named = ("target", "credential", "address", "outcome", "trust")
    open_ = any(st.query_params.get(name) for name in named)
    with (
        st.expander("More filters", expanded=open_),
        st.container(horizontal=True, vertical_alignment="bottom", key="at-more-filters"),
    ):
        target = filters.text_field("Target", "target", bounds.TARGET)
        credential = filters.text_field("Credential", "credential", bounds.CREDENTIAL_ID)
        address = filters.address_field(desk)
        outcome = filters.choice_field("Outcome", "outcome", Outcome)
        trust = filters.choice_field("Nonce trust", "trust", NonceTrust)
    return EventFilter(
        text=fewer.text,
        tool=fewer.tool,
        principal=fewer.principal,
        event_type=fewer.event_type,
        reason=fewer.reason,
        target=target,
        credential_id=credential,
        address=address,
        outcome=outcome,
        nonce_trust=trust,
    )


def _kept(wanted: EventFilter) -> dict[str, str | None]:
    return {
        "text": wanted.text,
        "type": wanted.event_type,
        "reason": wanted.reason,
        "tool": wanted.tool,
        "target": wanted.target,
        "principal": wanted.principal,
        "credential": wanted.credential_id,
        "address": wanted.address,
        "outcome": wanted.outcome,
        "trust": wanted.nonce_trust,
    }
