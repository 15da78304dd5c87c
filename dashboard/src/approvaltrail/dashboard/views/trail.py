"""Trail: everything known of one nonce, from its issuance to its last reuse."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from approvaltrail.dashboard import (
    axis,
    comparison,
    event_table,
    exporting,
    formats,
    labelling,
    palette,
    pieces,
    story,
    text,
)
from approvaltrail.dashboard.desk import Desk
from approvaltrail.dashboard.markup import Markup, element, joined, long_value
from approvaltrail.schemas import bounds
from approvaltrail.schemas.events import NonceTrust
from approvaltrail.store.answers import (
    EventFilter,
    ReuseFilter,
    StoredEvent,
    TimeRange,
    Trail,
)
from approvaltrail.store.labels import worst

_OTHERS: Final = 200
"""Reuses of the same caller, or in the range, that are looked at."""
_NEIGHBOURS: Final = 12
"""Other events of the caller that are shown."""
_NEAR: Final = timedelta(minutes=5)


def show(desk: Desk) -> None:
    """Draw the page for the nonce in the URL."""
    nonce = st.query_params.get("nonce", "")[: bounds.NONCE]
    if not nonce:
        link = element("a", "Replays", href=desk.view.href("replays"))
        pieces.empty(
            "Which nonce?", "Paste one, or a whole token, into the box above, or come from ", link
        )
        return
    trail = desk.everything.trail(nonce)
    text.show(element("h2", "Nonce ", long_value(trail.nonce), class_="at-heading"))
    beside = _actions(desk, nonce)
    if trail.trust is NonceTrust.VERIFIED:
        _verified(desk, trail)
    else:
        _unverified(desk, trail)
    with beside:  # asked last: the trail itself does not wait for its neighbours in a list
        text.show(_pager(desk, nonce))


def _verified(desk: Desk, trail: Trail) -> None:
    text.show(story.summary(trail))
    said = st.empty()
    text.show(axis.build(trail))
    told = st.empty()
    # What is known of the nonce alone comes first; a label also weighs the caller's other nonces.
    first = labelling.by_themselves(desk, trail.reuses)
    _look_ahead(desk, trail)
    _labelled(desk, trail, first, said, told)
    text.show(_beside(trail))
    _comparison(trail)
    labels = labelling.labelled(desk, trail.reuses)
    if labels != first:
        _labelled(desk, trail, labels, said, told)
    _around_it(desk, trail)
    _neighbours(desk, trail)
    _raw(trail)


def _look_ahead(desk: Desk, trail: Trail) -> None:
    """Begin to ask what is drawn after the timeline, in that order."""
    everything, subject = desk.everything, _subject(trail)
    everything.soon(labelling.labelled, desk, trail.reuses)
    desk.begin_status()
    if subject is not None:
        everything.soon(everything.neighbours, subject)
    everything.soon(_around, desk, trail.nonce)


def _labelled(
    desk: Desk,
    trail: Trail,
    labels: labelling.Labelled,
    said: DeltaGenerator,
    told: DeltaGenerator,
) -> None:
    """Draw, or draw anew, what depends on the labels."""
    with said:
        text.show(_verdictless(labels, desk))
    with told:
        text.show(pieces.section("Timeline (UTC)", story.timeline(trail, labels)))


def _actions(desk: Desk, nonce: str) -> DeltaGenerator:
    """Draw what can be done with the nonce, and return the place beside it."""
    with st.container(horizontal=True, vertical_alignment="center", key="at-actions"):
        with st.popover("Copy nonce"):
            text.copyable(nonce)
        exporting.offer(desk, exporting.OfNonce(nonce=nonce))
        return st.container()


def _pager(desk: Desk, nonce: str) -> Markup:
    """Lead to the tokens that were reused before and after this one."""
    newer, older = _around(desk, nonce)
    steps = []
    if newer:
        href = desk.view.href("trail", nonce=newer)
        steps.append(element("a", "‹ newer reused token", href=href))
    if older:
        href = desk.view.href("trail", nonce=older)
        steps.append(element("a", "older reused token ›", href=href))
    return element("div", *steps, class_="at-pager") if steps else joined()


def _around(desk: Desk, nonce: str) -> tuple[str | None, str | None]:
    """Return the reused nonces before and after this one in the list of reuses."""
    for looked_at in (pieces.PAGE_ROWS, _OTHERS):  # the first is what Replays has just asked for
        page = desk.answers.reuses(desk.view.time_range, ReuseFilter(), looked_at)
        order = list(dict.fromkeys(one.presentation.event.nonce for one in page.reuses))
        if nonce in order[:-1] or page.total <= len(page.reuses):
            break
    if nonce not in order:
        return None, None
    index = order.index(nonce)
    newer = order[index - 1] if index else None
    return newer, order[index + 1] if index + 1 < len(order) else None


def _unverified(desk: Desk, trail: Trail) -> None:
    if trail.claimed_total:
        times = formats.counted(trail.claimed_total, "time")
        pieces.empty(
            "A nonce that nobody vouches for",
            f"It was presented {times} in tokens whose signature did not hold. Whoever sent it "
            "chose the text, so it is linked to no issuance.",
        )
        text.show(event_table.build("Presentations", trail.claimed, desk.view))
        return
    if trail.withheld:
        pieces.empty("Nothing that you may see", _withheld(trail.withheld))
        return
    pieces.empty(
        "Nothing is stored of this nonce",
        "It was never issued here, or it is before retention, or it has not arrived yet: the "
        "status line above says how far the store is complete.",
    )


def _verdictless(labels: labelling.Labelled, desk: Desk) -> Markup:
    found = worst(label for _, label in labels if label is not None)
    if found is None:
        waits = "Looking at what else the caller did around it …"
        return element("div", waits, class_="at-box at-edge-unknown") if labels else joined()
    mark = palette.sign_of_label(found.kind)
    known = [label for _, label in labels if label is not None]
    same = [label for label in known if label.kind is found.kind]
    reasons = dict.fromkeys(reason for label in same for reason in label.reasons)
    unmet = dict.fromkeys(need for label in same for need in label.unmet)
    notes = dict.fromkeys(one for label in known for one in label.notes)
    limits = desk.settings.label_thresholds()
    inside = [
        element(
            "div",
            _list(pieces.sign(mark), list(reasons)),
            _list("It would have been consistent with a retry, with", list(unmet)),
            _list("Worth knowing", list(notes)),
            class_="at-columns",
        ),
        pieces.note(
            f"Limits in force: {formats.gap(limits.retry_window)} after the acceptance, "
            f"{limits.retry_reuses} reuses, {limits.caller_nonces} nonces of one caller within "
            f"{formats.gap(limits.caller_window)}. A label gives reasons, never a verdict."
        ),
    ]
    return element("div", *inside, class_=f"at-box at-edge-{mark.tone}")


def _list(title: str | Markup, items: list[str]) -> Markup | None:
    if not items and isinstance(title, str):
        return None
    points = element("ul", *(element("li", item) for item in items)) if items else None
    return element("div", element("div", title, class_="at-strong"), points)


def _beside(trail: Trail) -> Markup:
    """Say what belongs to the nonce and is not on the timeline."""
    said = []
    if trail.claimed_total:
        times = formats.counted(trail.claimed_total, "presentation")
        said.append(f"{times} of the same text with a signature that did not hold: not linked.")
    if trail.withheld:
        said.append(_withheld(trail.withheld))
    return joined(*(pieces.note(one) for one in said))


def _withheld(number: int) -> str:
    return f"{formats.counted(number, 'attempt')} from another tenant (withheld)."


def _comparison(trail: Trail) -> None:
    text.show(pieces.heading("What differs"))
    show_all = st.toggle("Show all fields", key="all", bind="query-params")
    table = comparison.build(trail, show_all=show_all)
    text.show(table or pieces.note("There is one call alone, so there is nothing to compare."))


def _around_it(desk: Desk, trail: Trail) -> None:
    """Show who else acted as the same principal in the tenant within minutes of the first reuse."""
    subject = _subject(trail)
    if subject is None or subject.event.principal is None:
        return
    at, event = subject.event.occurred_at, subject.event
    span = TimeRange(at - _NEAR, at + _NEAR + formats.INSTANT_STEP)
    wanted = EventFilter(principal=event.principal, tenant=event.tenant)
    page = desk.everything.events(span, wanted, _NEIGHBOURS)
    others = [one for one in page.events if one.event.nonce != trail.nonce]
    minutes = f"± {formats.gap(_NEAR)} of {formats.clock(at)} UTC"
    href = desk.view.between(
        "events", span.start, span.end, principal=event.principal, tenant=event.tenant or ""
    )
    link = element("a", f"all {formats.counted(page.total, 'event')}", href=href)
    text.show(pieces.heading(f"Same tenant and principal, {minutes}", link))
    if others:
        text.show(event_table.build("Same tenant and principal", others, desk.view))
    else:
        text.show(pieces.note("Nothing but this nonce is stored of them at that time."))


def _neighbours(desk: Desk, trail: Trail) -> None:
    subject = _subject(trail)
    if subject is None:
        return
    at, own = subject.event.occurred_at, trail.nonce
    found = [one for one in desk.everything.neighbours(subject) if one.event.nonce != own]
    nearest = sorted(found, key=lambda one: abs(one.event.occurred_at - at))[:_NEIGHBOURS]
    events = sorted(nearest, key=lambda one: one.event.occurred_at)
    text.show(pieces.heading("What else this caller did, ± 24 h"))
    if not events:
        text.show(pieces.note("Nothing else is stored of this caller around that time."))
        return
    text.show(event_table.build("The same caller", events, desk.view))
    if len(found) > len(events):
        count = f"The nearest {len(events)} of {formats.counted(len(found), 'event')}. "
        who = subject.event.principal
        link = element("a", "→ Events", href=desk.view.href("events", principal=who)) if who else ""
        text.show(pieces.note(count, link))


def _subject(trail: Trail) -> StoredEvent | None:
    if trail.reuses:
        return trail.reuses[0].presentation
    return trail.acceptance or trail.issuance or next(iter(trail.early_refusals), None)


def _raw(trail: Trail) -> None:
    events = [
        trail.issuance,
        trail.acceptance,
        *trail.completions,
        *trail.early_refusals,
        *(one.presentation for one in trail.reuses),
        *trail.claimed,
    ]
    with st.expander("Raw events (JSON)"):
        rows = [
            one.event.model_dump(mode="json")
            | {"partition": one.partition, "offset": one.offset}
            | {"stored_at": formats.iso(one.stored_at), "schema": one.schema_fingerprint}
            for one in events
            if one is not None
        ]
        text.copyable(json.dumps(rows, indent=2, ensure_ascii=False), language="json")
