"""Overview, for whoever is on call: is the boundary being tested, and can the answer be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import streamlit as st

from approvaltrail.dashboard import (
    charts,
    formats,
    labelling,
    layers,
    palette,
    pieces,
    states,
    text,
    words,
)
from approvaltrail.dashboard.charts import Layer
from approvaltrail.dashboard.desk import Desk
from approvaltrail.dashboard.markup import Child, Markup, element, joined
from approvaltrail.dashboard.pieces import Bar
from approvaltrail.dashboard.states import Recent, StateLine
from approvaltrail.dashboard.view import View
from approvaltrail.schemas.events import EventType, Reason
from approvaltrail.schemas.messages import Probe
from approvaltrail.store.answers import (
    EventFilter,
    Overview,
    ProducerCondition,
    Ranked,
    ReuseFilter,
    ReusePage,
    TimeRange,
)
from approvaltrail.store.labels import LabelKind

_LOOKED_AT: Final = 200
"""Reuses that are looked at one by one; all of them are counted."""


def show(desk: Desk) -> None:
    """Draw the page."""
    above = st.container()
    found = desk.answers.overview(desk.view.time_range)
    _look_ahead(desk)
    drawn = layers.by_outcome(found.series)
    text.show(_cards(found, drawn, desk.view))
    _chart(desk, found, drawn)
    with above:  # asked after what is quick to count
        _states(desk)
    text.show(_ledger(desk))
    text.show(_lists(desk, found))


def _look_ahead(desk: Desk) -> None:
    """Begin to ask what is drawn after the counts, in that order."""
    answers, span = desk.answers, desk.view.time_range
    desk.begin_status()
    answers.soon(answers.reuses, _recently(desk), ReuseFilter(), _LOOKED_AT)
    answers.soon(_refusals, desk, _recently(desk))
    answers.soon(answers.ledger_claims, span)
    answers.soon(answers.reuses, span, ReuseFilter(), _LOOKED_AT)


def _recently(desk: Desk) -> TimeRange:
    return desk.view.within(timedelta(minutes=desk.settings.recent_minutes))


def _states(desk: Desk) -> None:
    span = _recently(desk)
    recent = Recent(
        completeness=desk.completeness(),
        reuses=desk.answers.reuses(span, ReuseFilter(), _LOOKED_AT),
        refusals=_refusals(desk, span),
        now=desk.view.now,
    )
    lines = states.active_states(recent, desk.settings)
    text.show(element("ul", *(_state(one, desk.view, span) for one in lines), class_="at-states"))


def _refusals(desk: Desk, span: TimeRange) -> Counter[Reason]:
    counted: Counter[Reason] = Counter()
    for row in desk.answers.histogram(span, EventFilter(event_type=EventType.REFUSED)).series:
        counted[row.reason or Reason.OTHER] += row.events
    return counted


def _state(line: StateLine, view: View, span: TimeRange) -> Markup:
    icon = element("span", line.icon, class_="at-icon")
    link = None
    if line.page is not None:
        name = f"→ {line.page.capitalize()}"
        href = (
            view.between(line.page, span.start, span.end) if line.recent else view.href(line.page)
        )
        link = element("a", name, href=href)
    return element("li", icon, element("span", line.text, " ", link), class_=f"at-{line.tone}")


def _cards(found: Overview, drawn: Iterable[Layer], view: View) -> Markup:
    cards = []
    for kind, layer in zip(layers.OUTCOMES, drawn, strict=True):
        mark = palette.sign_of(kind)
        number, before = found.counts.get(kind, 0), found.previous.get(kind, 0)
        shape = charts.sampled(layer, found.bucket, view.time_range)
        cards.append(
            element(
                "a",
                element("span", pieces.sign(mark, mark.word.capitalize()), class_="at-card-name"),
                element("span", formats.count(number), class_="at-card-number"),
                element("span", formats.change(number, before), class_="at-small"),
                charts.sparkline(shape, mark.tone),
                href=rows_of(view, kind),
                class_=f"at-card at-edge-{mark.tone}",
            )
        )
    return element("div", *cards, class_="at-cards")


def rows_of(view: View, kind: EventType) -> str:
    """Return the link to the rows that a count of one outcome stands for."""
    if kind is EventType.REPLAYED:
        return view.href("replays", strict="true")
    return view.href("refusals") if kind is EventType.REFUSED else view.href("events", type=kind)


def _chart(desk: Desk, found: Overview, drawn: list[Layer]) -> None:
    view = desk.view
    if not found.series:
        text.show(pieces.heading("Events by outcome"))
        filtered = view.tenant is not None
        pieces.nothing_here(desk, "events", filtered=filtered, clear=view.href("./", tenant=""))
        return

    def zoom(start: datetime, end: datetime) -> str:
        return view.between("./", start, end)

    entries = [
        (pieces.sign(palette.sign_of(kind)), layer.tone, rows_of(view, kind))
        for kind, layer in zip(layers.OUTCOMES, drawn, strict=True)
    ]
    text.show(
        joined(
            pieces.heading("Events by outcome", pieces.zoom_out(view, "./")),
            charts.legend(entries),
            charts.columns("Events by outcome", drawn, found.bucket, view.time_range, zoom),
        )
    )


def _ledger(desk: Desk) -> Markup:
    found = desk.answers.ledger_claims(desk.view.time_range)
    said: list[Child] = []
    if found.last_claim_at is None:
        said.append("no claim stored")
    else:
        ago = formats.ago(found.last_claim_at, desk.view.now)
        said.append(joined("last claim ", pieces.at(found.last_claim_at, ago)))
    alive = {ProducerCondition.LIVE, ProducerCondition.SILENT}
    probed = [
        one
        for one in desk.completeness().producers
        if one.condition in alive and one.ledger_probe_at is not None
    ]
    failing = sum(one.ledger_probe is Probe.FAILING for one in probed)
    if failing:
        said.append(f"▲ probe failing on {failing} of {formats.counted(len(probed), 'server')}")
    elif probed:
        latest = max(one.ledger_probe_at for one in probed if one.ledger_probe_at is not None)
        said.append(f"probe ok {formats.ago(latest, desk.view.now)}")
    said.append(f"{formats.count(found.claims)} spent in this range")
    parts: list[Child] = []
    for one in said:
        parts += [" · ", one]
    link = element("a", "→ Ledger", href=desk.view.href("ledger"))
    return element("p", element("strong", "Ledger"), *parts, " ", link, class_="at-ledger-line")


def _lists(desk: Desk, found: Overview) -> Markup:
    view = desk.view
    refusals = [
        Bar(
            name=words.REASONS[reason],
            events=events,
            href=view.href("refusals", reason=reason.value),
            tone="refused",
        )
        for reason, events in sorted(found.refusals.items(), key=lambda one: -one[1])
    ]
    parts = [
        pieces.bars("Refusals by cause", refusals, "No refusal in this range."),
        _reuses_by_label(desk),
        _ranked("Busiest tenants", found.busiest_tenants, view, "tenant"),
        _ranked("Busiest tools", found.busiest_tools, view, "tool"),
        _ranked("Busiest principals", found.busiest_principals, view, "principal"),
    ]
    return element("div", *parts, class_="at-lists")


def _reuses_by_label(desk: Desk) -> Markup:
    page = desk.answers.reuses(desk.view.time_range, ReuseFilter(), _LOOKED_AT)
    labels = labelling.labelled_page(desk, page.reuses, newest=desk.view.ends_with_now)
    counts = Counter(label.kind for _, label in labels if label is not None)
    bars = [_label_bar(kind, counts[kind], desk.view) for kind in LabelKind if counts[kind]]
    listed = pieces.bars("Reuses by label", bars, "No reuse in this range.")
    return joined(listed, _of_the_latest(page)) if page.total > len(page.reuses) else listed


def _of_the_latest(page: ReusePage) -> Markup:
    return pieces.note(f"Of the latest {len(page.reuses)} of {formats.count(page.total)} reuses.")


def _label_bar(kind: LabelKind, reuses: int, view: View) -> Bar:
    mark = palette.sign_of_label(kind)
    href = view.href("replays", label=kind.value)
    return Bar(name=pieces.sign(mark), events=reuses, href=href, tone=mark.tone)


def _ranked(title: str, ranked: Iterable[Ranked], view: View, field: str) -> Markup:
    rows = [
        Bar(
            name=element("bdi", one.name),
            events=one.events,
            href=view.href("events", **{field: one.name}),
            title=one.name,
        )
        for one in ranked
    ]
    return pieces.bars(title, rows, "None in this range.")
