"""Replays: every reuse of a token, whatever came of it, one click from its trail.

A reuse is any presentation of a verified nonce after its first acceptance. What the gate itself
called a replay is the strict kind, and a filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import streamlit as st

from approvaltrail.dashboard import (
    exporting,
    filters,
    formats,
    labelling,
    palette,
    pieces,
    reuse_table,
    text,
)
from approvaltrail.dashboard.desk import Desk
from approvaltrail.dashboard.labelling import Labelled
from approvaltrail.dashboard.markup import Markup, element, joined
from approvaltrail.schemas import bounds
from approvaltrail.store.answers import ReuseFilter, ReusePage
from approvaltrail.store.labels import LabelKind

_LABELLED: Final = 500
"""Reuses that are labelled one by one when a label is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the filters say."""

    of_store: ReuseFilter
    label: LabelKind | None

    @property
    def kept(self) -> dict[str, str | None]:
        """The filters as they stand in the URL."""
        return {
            "tool": self.of_store.tool,
            "principal": self.of_store.principal,
            "label": self.label,
            "strict": "true" if self.of_store.strict_replays_only else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The rows of this page, and how many there are of them in all."""

    page: ReusePage
    rows: Labelled
    total: int
    looked_through: int | None = None
    """How many of the latest reuses were labelled, where a label is looked for."""


def show(desk: Desk) -> None:
    """Draw the page."""
    wanted = _filters()
    offset = pieces.offset_in_url()
    found = _find(desk, wanted, offset)
    what = exporting.OfReuses(wanted=wanted.of_store, label=wanted.label)
    exporting.lead(desk, _summary(desk, found, wanted.label), what)
    filters.chips(desk, "replays", {"strict": "strict replays only"}, wanted.kept)
    if not found.rows:
        filtered = any(wanted.kept.values()) or desk.view.tenant is not None
        clear = desk.view.href("replays", tenant="")
        pieces.nothing_here(desk, "reuses", filtered=filtered, clear=clear)
        return
    place = st.empty()
    with place:
        text.show(reuse_table.build(found.rows, desk.view))
    desk.begin_status()
    pieces.pager(desk, "replays", found.total, len(found.rows), offset, **wanted.kept)
    text.show(_legend(desk))
    if wanted.label is None:  # then labels are those of the rows alone, so far
        rows = _labelled(desk, wanted, found.page, offset)
        if rows != found.rows:
            with place:
                text.show(reuse_table.build(rows, desk.view))


def _filters() -> Wanted:
    with st.container(horizontal=True, vertical_alignment="bottom", key="at-filters"):
        label = filters.choice_field("Label", "label", LabelKind)
        tool = filters.text_field("Tool", "tool", bounds.TOOL)
        principal = filters.text_field("Principal", "principal", bounds.PRINCIPAL)
        strict = st.toggle("Strict replays only", key="strict", bind="query-params")
    of_store = ReuseFilter(tool=tool, principal=principal, strict_replays_only=strict)
    return Wanted(of_store=of_store, label=label)


def _find(desk: Desk, wanted: Wanted, offset: int) -> Found:
    span, size = desk.view.time_range, pieces.PAGE_ROWS
    if wanted.label is None:
        page = desk.answers.reuses(span, wanted.of_store, size, offset)
        desk.everything.soon(_labelled, desk, wanted, page, offset)
        rows = labelling.by_themselves(desk, page.reuses)
        return Found(page=page, rows=rows, total=page.total)
    page = desk.answers.reuses(span, wanted.of_store, _LABELLED)
    all_rows = _labelled(desk, wanted, page, 0)
    rows = [row for row in all_rows if row[1] is not None and row[1].kind is wanted.label]
    return Found(
        page=page,
        rows=rows[offset : offset + size],
        total=len(rows),
        looked_through=len(page.reuses),
    )


def _labelled(desk: Desk, wanted: Wanted, page: ReusePage, offset: int) -> Labelled:
    if wanted.of_store != ReuseFilter():
        return labelling.labelled(desk, page.reuses)
    newest = offset == 0 and desk.view.ends_with_now
    return labelling.labelled_page(desk, page.reuses, newest=newest)


def _summary(desk: Desk, found: Found, label: LabelKind | None) -> Markup:
    page = found.page
    said = f"{formats.counted(page.total, 'reuse')} of {formats.counted(page.tokens, 'token')}"
    labelled = None
    if label is not None and found.looked_through is not None:
        word = palette.sign_of_label(label).word
        whole = found.looked_through == page.total
        among = "" if whole else f" among the latest {formats.count(found.looked_through)}"
        labelled = f" {formats.count(found.total)} labelled “{word}”{among}."
    claimed = None
    if page.claimed:
        words = formats.counted(page.claimed, "presentation")
        link = desk.view.href("events", trust="claimed")
        about = " with a nonce that no signature vouches for: counted, never linked."
        claimed = joined(" ", element("a", words, href=link, class_="at-hatched"), about)
    return element("p", element("strong", said), ".", labelled, claimed, class_="at-lead")


def _legend(desk: Desk) -> Markup:
    limits = desk.settings.label_thresholds()
    return pieces.note(
        "“Differs” compares with the accepting call; a question mark stands by what the caller "
        "says of itself. A label gives reasons to look, never a verdict. It calls a reuse "
        "consistent with a retry when principal, credential and session are the accepted call’s, "
        f"nothing trusted differs, and it came within {formats.gap(limits.retry_window)}, as one "
        f"of at most {limits.retry_reuses}.",
    )
