"""Refusals: what was turned down and why, over time, by whom and for what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import streamlit as st

from approvaltrail.dashboard import (
    charts,
    event_table,
    exporting,
    filters,
    formats,
    layers,
    pieces,
    text,
    words,
)
from approvaltrail.dashboard.charts import Layer
from approvaltrail.dashboard.desk import Desk
from approvaltrail.dashboard.markup import Markup, element, joined
from approvaltrail.dashboard.pieces import Bar
from approvaltrail.schemas import bounds
from approvaltrail.schemas.events import EventType, Reason
from approvaltrail.store.answers import EventFilter, Histogram, Ranked

_RANKED: Final = {
    "tool": ("Refused most: tools", "tool"),
    "principal": ("Refused most: principals", "principal"),
    "client_address": ("Refused most: addresses", "address"),
}
"""Field → title of its list, and its filter's name in the URL."""


def show(desk: Desk) -> None:
    """Draw the page."""
    wanted = _filters(desk)
    kept = _kept(wanted)
    span, offset = desk.view.time_range, pieces.offset_in_url()
    found = desk.answers.histogram(span, wanted)
    desk.answers.soon(desk.answers.events, span, wanted, pieces.PAGE_ROWS, offset)
    desk.begin_status()
    total = sum(row.events for row in found.series)
    exporting.lead(desk, _summary(desk, total), exporting.OfEvents(wanted=wanted))
    filters.chips(desk, "refusals", {"reason": "cause"}, kept)
    if not total:
        filtered = any(kept.values()) or desk.view.tenant is not None
        clear = desk.view.href("refusals", tenant="")
        pieces.nothing_here(desk, "refusals", filtered=filtered, clear=clear)
        return
    text.show(_over_time(desk, found, kept))
    ranked = desk.answers.ranking(span, wanted, tuple(_RANKED))
    text.show(_lists(desk, found, ranked, kept))
    page = desk.answers.events(span, wanted, pieces.PAGE_ROWS, offset)
    text.show(
        joined(
            pieces.heading("Every refusal"), event_table.build("Refusals", page.events, desk.view)
        )
    )
    pieces.pager(desk, "refusals", page.total, len(page.events), offset, **kept)


def _filters(desk: Desk) -> EventFilter:
    with st.container(horizontal=True, vertical_alignment="bottom", key="at-filters"):
        reason = filters.choice_field("Cause", "reason", Reason)
        tool = filters.text_field("Tool", "tool", bounds.TOOL)
        principal = filters.text_field("Principal", "principal", bounds.PRINCIPAL)
        address = filters.address_field(desk)
    return EventFilter(
        event_type=EventType.REFUSED,
        reason=reason,
        tool=tool,
        principal=principal,
        address=address,
    )


def _kept(wanted: EventFilter) -> dict[str, str | None]:
    return {
        "reason": wanted.reason,
        "tool": wanted.tool,
        "principal": wanted.principal,
        "address": wanted.address,
    }


def _summary(desk: Desk, total: int) -> Markup:
    link = element("a", "Replays", href=desk.view.href("replays", strict="true"))
    about = joined(" The gate’s own replays stand on ", link, ".")
    refusals = element("strong", formats.counted(total, "refusal"))
    return element("p", refusals, ".", about, class_="at-lead")


def _over_time(desk: Desk, found: Histogram, kept: dict[str, str | None]) -> Markup:
    drawn = layers.by_cause(found.series)

    def zoom(start: datetime, end: datetime) -> str:
        return desk.view.between("refusals", start, end, **kept)

    entries = [
        (
            layer.word,
            layer.tone,
            None if reason is None else desk.view.href("refusals", **kept | {"reason": reason}),
        )
        for reason, layer in drawn
    ]
    only: list[Layer] = [layer for _, layer in drawn]
    return joined(
        pieces.heading("By cause over time", pieces.zoom_out(desk.view, "refusals", **kept)),
        charts.legend(entries),
        charts.columns("Refusals by cause", only, found.bucket, desk.view.time_range, zoom),
    )


def _lists(
    desk: Desk,
    found: Histogram,
    ranked: dict[str, tuple[Ranked, ...]],
    kept: dict[str, str | None],
) -> Markup:
    totals: dict[Reason, int] = {}
    for row in found.series:
        if row.reason is not None:
            totals[row.reason] = totals.get(row.reason, 0) + row.events
    tones = {reason: layer.tone for reason, layer in layers.by_cause(found.series)}
    causes = [
        Bar(
            name=words.REASONS[reason],
            events=events,
            href=desk.view.href("refusals", **kept | {"reason": reason}),
            tone=tones.get(reason, "unknown"),
        )
        for reason, events in sorted(totals.items(), key=lambda one: -one[1])
    ]
    lists = [pieces.bars("Causes", causes, "No refusal in this range.")]
    for name, entries in ranked.items():
        title, parameter = _RANKED[name]
        lists.append(pieces.bars(title, _bars(desk, entries, parameter, kept), "None is known."))
    return element("div", *lists, class_="at-lists")


def _bars(
    desk: Desk, ranked: Sequence[Ranked], parameter: str, kept: dict[str, str | None]
) -> list[Bar]:
    return [
        Bar(
            name=element("bdi", one.name),
            events=one.events,
            href=desk.view.href("refusals", **kept | {parameter: one.name}),
            tone="refused",
            title=one.name,
        )
        for one in ranked
    ]
