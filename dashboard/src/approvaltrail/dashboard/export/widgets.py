"""The button that exports what a page shows; only investigators have one.

In two steps: what will be taken is made and said first (rows, bytes, completeness), then taken.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Final

import streamlit as st

from approvaltrail.dashboard import formats, pieces, text
from approvaltrail.dashboard.access.identity import sentence
from approvaltrail.dashboard.desk import Desk
from approvaltrail.dashboard.errors import ExportError
from approvaltrail.dashboard.export.encodings import Encoding
from approvaltrail.dashboard.export.labelled import LabelledReuses
from approvaltrail.dashboard.export.making import Terms, export_events, export_trail, file_name
from approvaltrail.dashboard.export.manifest import Exporter, Manifest
from approvaltrail.dashboard.export.settings import ExportSettings
from approvaltrail.dashboard.exporting import Exportable, OfEvents, OfNonce, OfReuses
from approvaltrail.dashboard.markup import Markup, element
from approvaltrail.store.answers import EventFilter, ReuseFilter
from approvaltrail.store.errors import StoreError

_PREPARED: Final = "at-export"
"""Session state: the one export that this browser prepared last."""
_NAMES: Final = {"NDJSON": Encoding.NDJSON, "CSV": Encoding.CSV}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    asked: str
    manifest: Manifest
    content: bytes = field(repr=False)


def offer(desk: Desk, what: Exportable) -> None:
    """Draw the button for a trail, or for the events or reuses of the range and filter."""
    if not desk.viewer.may_export:
        return
    with st.popover("Export"):
        chosen = st.selectbox("Format", list(_NAMES), key="at-export-format", filter_mode=None)
        encoding = _NAMES[chosen or "NDJSON"]
        asked = _asked(desk, what, encoding)
        if st.button("Prepare", key="at-export-prepare"):
            _prepare(desk, what, encoding)
        prepared: _Prepared | None = st.session_state.get(_PREPARED)
        if prepared is None or prepared.asked != asked:
            text.show(pieces.note("One ZIP file: the events, and a manifest that says what they "
                                  "are, for whom, and how complete the store was."))  # fmt: skip
            return
        text.show(_summary(prepared))
        st.download_button(
            "Download",
            data=prepared.content,
            file_name=file_name(prepared.manifest),
            mime="application/zip",
            on_click="ignore",
            key="at-export-download",
        )


def _prepare(desk: Desk, what: Exportable, encoding: Encoding) -> None:
    viewer = desk.viewer
    terms = Terms(
        exporter=Exporter(principal=viewer.principal, subject=viewer.subject, role=viewer.role),
        encoding=encoding,
        expected_producers=desk.settings.expected_producers,
        maximum_rows=ExportSettings.from_environment().export_rows,
        now=desk.view.now,
    )
    st.session_state.pop(_PREPARED, None)
    try:
        manifest, content = _made(desk, what, terms)
    except (ExportError, StoreError) as error:
        pieces.empty("Nothing was exported", sentence(error))
        return
    st.session_state[_PREPARED] = _Prepared(
        asked=_asked(desk, what, encoding), manifest=manifest, content=content
    )


def _made(desk: Desk, what: Exportable, terms: Terms) -> tuple[Manifest, bytes]:
    file = io.BytesIO()
    match what:
        case OfNonce(nonce=nonce):
            whole = desk.everything
            manifest = export_trail(whole.queries, nonce, whole.scope, file, terms)
        case OfEvents() | OfReuses():
            some, span, wanted = desk.answers, desk.view.time_range, _wanted(desk, what)
            manifest = export_events(some.queries, span, some.scope, wanted, file, terms)
    return manifest, file.getvalue()


def _wanted(desk: Desk, what: OfEvents | OfReuses) -> EventFilter | ReuseFilter | LabelledReuses:
    if isinstance(what, OfEvents) or what.label is None:
        return what.wanted
    limits = desk.settings.label_thresholds()
    return LabelledReuses(wanted=what.wanted, label=what.label, limits=limits)


def _asked(desk: Desk, what: Exportable, encoding: Encoding) -> str:
    """Name an export: what was prepared for another page, viewer or filter is not offered here."""
    choice = desk.view.choice
    span = (choice.range_name, choice.start, choice.end, desk.answers.scope)
    where = desk.everything.scope if isinstance(what, OfNonce) else span
    return repr((what, where, encoding, desk.viewer))


def _summary(prepared: _Prepared) -> Markup:
    manifest = prepared.manifest
    rows = formats.counted(manifest.data.rows, "event")
    size = f"{formats.count(len(prepared.content))} bytes"
    parts = [element("div", element("strong", rows), f", {size}.")]
    if manifest.withheld:
        away = formats.counted(manifest.withheld, "presentation")
        parts.append(element("div", f"{away} of other tenants not in it."))
    parts.append(element("div", manifest.completeness.sentence))
    parts.append(
        element(
            "div",
            "SHA-256 of the manifest, to keep with the case: ",
            _hash(manifest),
            class_="at-small",
        )
    )
    return element("div", *parts)


def _hash(manifest: Manifest) -> Markup:
    return element("span", manifest.sha256(), class_="at-mono")
