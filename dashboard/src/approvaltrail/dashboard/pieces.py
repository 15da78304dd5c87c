"""Small parts that several pages show alike: signs, labels, instants, tables, empty states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

import streamlit as st

from approvaltrail.dashboard import formats, palette, text, words, zone
from approvaltrail.dashboard.desk import Desk
from approvaltrail.dashboard.markup import NAME, Child, Markup, element, joined, long_value
from approvaltrail.dashboard.palette import Sign
from approvaltrail.dashboard.view import View
from approvaltrail.schemas.events import RecordedEvent
from approvaltrail.schemas.messages import GateState, Probe
from approvaltrail.store.answers import CompletenessState
from approvaltrail.store.labels import Label
from approvaltrail.store.queries.conditions import MAXIMUM_OFFSET


def sign(mark: Sign, word: str | None = None) -> Markup:
    """Show a mark: icon and word, the icon in the mark's colour."""
    icon = element("span", mark.icon, class_=f"at-icon at-{mark.tone}")
    return element("span", icon, " ", word or mark.word, class_="at-sign")


def outcome(event: RecordedEvent, *, reuse: bool = False) -> Markup:
    """Show what came of a presentation."""
    return sign(palette.sign_of(event.event_type), words.outcome(event, reuse=reuse))


def label(found: Label | None) -> Markup:
    """Show a label, its reasons on hover; None is one that is still being looked for."""
    if found is None:
        return element("span", "…", class_="at-label at-edge-unknown", title="being looked at")
    mark = palette.sign_of_label(found.kind)
    why = "; ".join((*found.reasons, *found.notes)) or "all that is known is as a retry leaves it"
    inside = sign(mark)
    return element("span", inside, class_=f"at-label at-edge-{mark.tone}", title=why)


def instant(moment: datetime | None) -> Markup:
    """Show an instant on two lines, the time above the day; the viewer's zone on hover."""
    if moment is None:
        return element("span", "—", class_="at-unknown", title="not recorded")
    time = element("span", formats.clock(moment), class_="at-figures")
    return two_lines(at(moment, time), formats.day(moment))


def at(moment: datetime, shown: Child = None) -> Markup:
    """Show an instant in a line, in UTC, or as what is given; the viewer's zone on hover."""
    said = f"{formats.instant(moment)} UTC" if shown is None else shown
    return element("time", said, datetime=formats.iso(moment), title=zone.both(moment))


def two_lines(above: Child, below: Child) -> Markup:
    """Show one thing with another below it in small."""
    if below is None or below == "":
        return element("div", above)
    return joined(element("div", above), element("div", below, class_="at-small"))


def aim(event: RecordedEvent) -> Markup:
    """Show the tool above its target."""
    target = long_value(event.target, keep=NAME) if event.target else None
    return two_lines(element("bdi", event.tool), target)


def probe(found: Probe) -> Markup:
    """Show what a server's last look at its ledger said."""
    match found:
        case Probe.OK:
            return sign(Sign("ok", "●", palette.Tone.ACCEPTED))
        case Probe.FAILING:
            return sign(Sign("failing", "■", palette.Tone.REPLAYED))
        case Probe.NONE:
            return element("span", "not looked at", class_="at-unknown")
        case _:
            assert_never(found)


def gate(state: GateState, reason: str | None) -> Markup:
    """Show whether a server's gate may issue and accept, and why not."""
    if state is GateState.OPEN:
        return sign(Sign("open", "●", palette.Tone.ACCEPTED))
    return two_lines(sign(Sign("closed", "■", palette.Tone.REPLAYED)), reason)


SHORT_NAME = (9, 7)
"""How much of a caller's name has room in a column; the whole is on hover and in the copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One entry of a ranked list."""

    name: Child
    events: int
    href: str
    tone: str = "issued"
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name, and the class of its cells."""

    name: str
    class_: str | None = None


def table(
    name: str,
    columns: Sequence[Column],
    rows: Iterable[tuple[str | None, Sequence[Child]]],
    *,
    broad: bool = False,
) -> Markup:
    """Build a table; each row brings a class or None. Where it is narrow, rows become cards.

    A broad table needs more room than others before it is one.
    """
    head = element("tr", *(element("th", one.name, scope="col") for one in columns))
    body = [
        element(
            "tr",
            *(
                element("td", cell, class_=column.class_, data_label=column.name)
                for column, cell in zip(columns, cells, strict=True)
            ),
            class_=kind,
        )
        for kind, cells in rows
    ]
    caption = element("caption", name)
    return element(
        "table",
        caption,
        element("thead", head),
        element("tbody", *body),
        class_=f"at{' at-broad' if broad else ''}",
    )


def section(title: str, *inside: Child) -> Markup:
    """Build a headed part of a page."""
    return element("div", heading(title), *inside, class_="at-section")


def heading(title: str, beside: Child = None) -> Markup:
    """Build the heading of a part of a page, with something small beside it."""
    small = element("span", beside, class_="at-beside") if beside else None
    return element("h2", title, " " if small else None, small, class_="at-part-name")


def bars(title: str, rows: Sequence[Bar], nothing: str) -> Markup:
    """Build a ranked list; every entry is a link to its rows."""
    if not rows:
        return section(title, note(nothing))
    most = max(one.events for one in rows) or 1
    items = [
        element(
            "li",
            element(
                "a",
                element("span", one.name, class_="at-bar-name", title=one.title),
                element("span", formats.count(one.events), class_="at-figures"),
                element(
                    "span",
                    class_=f"at-bar at-fill-{one.tone}",
                    style=f"width:{100 * one.events / most:.1f}%",
                ),
                href=one.href,
                class_="at-bar-row",
            ),
        )
        for one in rows
    ]
    return section(title, element("ol", *items, class_="at-bars"))


def zoom_out(view: View, page: str, **kept: str | None) -> Markup | None:
    """Lead back from a span of time to a longer one, and to the last day."""
    if not view.is_absolute:
        return None
    return joined(
        element("a", "zoom out", href=view.wider(page, **kept)),
        " · ",
        element("a", "last 24 h", href=view.latest(page, **kept)),
    )


def note(*words_: Child) -> Markup:
    """Build a remark in small."""
    return element("p", *words_, class_="at-note")


def empty(title: str, *explanation: Child) -> None:
    """Show that there is nothing to show, and why."""
    box = element("div", element("strong", title), element("p", *explanation), class_="at-empty")
    text.show(box)


def nothing_here(desk: Desk, what: str, *, filtered: bool, clear: str) -> None:
    """Say why a list is empty: each cause has another cure."""
    found = desk.completeness()
    if found.state is CompletenessState.NOTHING_RECORDED:
        empty(
            "Nothing recorded yet",
            "No producer has reported. Embed the producer in the server that asks for "
            "confirmations, or run the demo: make demo.",
        )
        return
    stale = found.complete_until is not None and found.complete_until < desk.view.time_range.start
    if stale and found.complete_until is not None:
        since = f"{formats.instant(found.complete_until)} UTC"
        empty(f"No {what} stored", f"The pipeline is behind: it has stored what happened up to "
              f"{since}, and the range begins later. See Pipeline.")  # fmt: skip
    elif filtered:
        link = element("a", "Clear the filters", href=clear)
        empty(f"The filters exclude all {what}", link, " to see the whole range.")
    else:
        bounds = desk.view.time_range
        empty(
            f"No {what} in this range",
            f"From {formats.instant(bounds.start)} to {formats.instant(bounds.end)} UTC. "
            "Choose a longer range above.",
        )


def pager(desk: Desk, page: str, total: int, shown: int, offset: int, **kept: str | None) -> None:
    """Show which rows these are, and the links to those before and after."""
    if total <= shown and not offset:
        return
    size = PAGE_ROWS
    newer = desk.view.href(page, offset=max(0, offset - size) or None, **kept)
    older = desk.view.href(page, offset=offset + size, **kept)
    where = f"{formats.count(offset + 1)}–{formats.count(offset + shown)} of {formats.count(total)}"
    parts = [
        element("a", "‹ newer", href=newer) if offset else None,
        element("span", where, class_="at-figures"),
        element("a", "older ›", href=older) if offset + shown < total else None,
    ]
    text.show(element("div", *parts, class_="at-pager"))


PAGE_ROWS = 50


def offset_in_url() -> int:
    """Read from the URL at which row the page begins."""
    given = st.query_params.get("offset", "0")
    return min(int(given[:9]), MAXIMUM_OFFSET) if given.isascii() and given.isdigit() else 0


def who(event: RecordedEvent, keep: tuple[int, int] = NAME) -> Markup:
    """Name the caller; an unauthenticated one by address, and says so."""
    if event.principal is not None:
        return long_value(event.principal, keep=keep)
    name = words.caller(event)
    if name is None:
        return element("span", "unknown caller", class_="at-unknown")
    return joined(
        long_value(name, keep=keep), element("span", " (no principal)", class_="at-small")
    )
