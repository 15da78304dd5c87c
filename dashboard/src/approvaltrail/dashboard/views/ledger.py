"""Ledger: what became of every nonce that was issued, and whether the ledger could be asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import streamlit as st

from approvaltrail.dashboard import event_table, filters, formats, pieces, text, words
from approvaltrail.dashboard.desk import Desk
from approvaltrail.dashboard.markup import Child, Markup, element, joined
from approvaltrail.dashboard.palette import Sign, Tone
from approvaltrail.dashboard.pieces import Column
from approvaltrail.schemas.messages import Probe
from approvaltrail.store.answers import (
    Fate,
    LedgerBalance,
    LedgerOutage,
    ProducerCondition,
    ProducerStatus,
)

_OUTAGES_SHOWN: Final = 50
COMPARE: Final = "approvaltrail ledger reconcile"
"""The command that compares the ledger's own claims, which this page never reads, with these."""
_FATES: Final = {
    Fate.ACCEPTED: Sign("accepted", "✔\ufe0e", Tone.ACCEPTED),
    Fate.SPENT_UNRECORDED: Sign("spent, acceptance not stored", "▲", Tone.REPLAYED),
    Fate.EXPIRED: Sign("expired unspent", "○", Tone.COMPLETED),
    Fate.OUTSTANDING: Sign("outstanding", "●", Tone.ISSUED),
    Fate.EXPIRY_UNKNOWN: Sign("unspent, expiry not known", "?", Tone.UNKNOWN),
    Fate.ACCEPTED_UNISSUED: Sign("accepted, issuance not stored", "▲", Tone.REPLAYED),
}
_ALARMING: Final = (Fate.SPENT_UNRECORDED, Fate.EXPIRY_UNKNOWN)
"""Shown only when there are any: they ought not to be."""


def show(desk: Desk) -> None:
    """Draw the page."""
    desk.begin_status()
    desk.answers.soon(desk.answers.ledger_claims, desk.view.time_range)
    desk.answers.soon(desk.answers.ledger_outages, desk.view.time_range)
    balance = desk.answers.ledger_balance(desk.view.time_range, desk.view.now)
    text.show(_balance(desk, balance))
    _nonces(desk, balance)
    text.show(_claims(desk, balance))
    text.show(_probes(desk))
    text.show(_outages(desk))
    text.show(pieces.heading("The ledger’s own claims"))
    text.show(
        pieces.note(
            "The dashboard reads the store alone. Whether the ledger holds claims of which no "
            "acceptance is stored, or the other way round, is compared where the ledger is:"
        )
    )
    text.copyable(COMPARE)


def _balance(desk: Desk, balance: LedgerBalance) -> Markup:
    issued = f"{formats.counted(balance.issued, 'distinct nonce')} issued"
    if not balance.issued:
        nothing = pieces.note("No nonce was issued in this range.")
        return joined(pieces.heading("What became of the nonces issued"), nothing)
    shown = {
        fate: count
        for fate, count in balance.fates.items()
        if count or fate not in _ALARMING
    }  # fmt: skip
    bar = [
        element(
            "span",
            class_=f"at-fill-{_FATES[fate].tone}",
            style=f"width:{100 * count / balance.issued:.3f}%",
            title=f"{formats.count(count)} {_FATES[fate].word}",
        )
        for fate, count in shown.items()
        if count
    ]
    said = ", ".join(f"{count} {_FATES[fate].word}" for fate, count in shown.items())
    return joined(
        pieces.heading("What became of the nonces issued"),
        element("p", element("strong", issued), " = ", *_sum(desk, shown), class_="at-lead"),
        element("div", *bar, class_="at-balance", role="img", aria_label=f"{issued}: {said}"),
        _remainder(balance),
    )  # fmt: skip


def _sum(desk: Desk, shown: dict[Fate, int]) -> Iterable[Child]:
    for index, (fate, count) in enumerate(shown.items()):
        if index:
            yield " + "
        mark = pieces.sign(_FATES[fate], f"{formats.count(count)} {_FATES[fate].word}")
        yield element("a", mark, href=desk.view.href("ledger", fate=fate.value)) if count else mark


def _remainder(balance: LedgerBalance) -> Markup:
    unexplained = sum(balance.fates[fate] for fate in _ALARMING)
    if not unexplained:
        return pieces.note("✔ It closes: every nonce issued has one fate, and none is left over.")
    named = words.listed(
        [
            f"{formats.count(balance.fates[fate])} {_FATES[fate].word}"
            for fate in _ALARMING
            if balance.fates[fate]
        ]
    )
    return element(
        "p",
        pieces.sign(Sign("It closes only with a remainder", "▲", Tone.REPLAYED)),
        f": {named}. See whether the status line says that events lack.",
        class_="at-note",
    )


def _nonces(desk: Desk, balance: LedgerBalance) -> None:
    """List the nonces of the fate that the URL names."""
    fate = next((one for one in Fate if one.value == st.query_params.get("fate")), None)
    if fate is None:
        return
    filters.chips(desk, "ledger", {}, {"fate": fate})
    offset, size = pieces.offset_in_url(), pieces.PAGE_ROWS
    found = desk.answers.ledger_nonces(desk.view.time_range, desk.view.now, fate, size, offset)
    if not found:
        text.show(pieces.note(f"None is {_FATES[fate].word} in this range."))
        return
    total = balance.accepted_unissued if fate is Fate.ACCEPTED_UNISSUED else balance.fates[fate]
    title = f"Nonces {_FATES[fate].word}"
    text.show(joined(pieces.heading(title), event_table.build(title, found, desk.view)))
    pieces.pager(desk, "ledger", total, len(found), offset, fate=fate)


def _claims(desk: Desk, balance: LedgerBalance) -> Markup:
    accepted = desk.view.href("events", type="accepted")
    found = desk.answers.ledger_claims(desk.view.time_range)
    last: Child = "no claim is stored"
    if found.last_claim_at is not None:
        ago = formats.ago(found.last_claim_at, desk.view.now)
        last = joined("the last ", ago, ", at ", pieces.at(found.last_claim_at))
    spent = formats.counted(found.claims, "nonce")
    lines = [joined(f"{spent} spent in the ledger in this range; ", last)]
    if found.unledgered_acceptances:
        times = formats.counted(found.unledgered_acceptances, "acceptance")
        about = " by tools that spend no nonce: its token can be accepted again while valid"
        lines.append(joined(times, about))
    total = found.claims + found.unledgered_acceptances
    if total:
        link = element("a", formats.counted(total, "acceptance"), href=accepted)
        lines.append(joined(link, " in all"))
    if balance.accepted_unissued:
        nonces = formats.counted(balance.accepted_unissued, "nonce")
        href = desk.view.href("ledger", fate=Fate.ACCEPTED_UNISSUED.value)
        mark = pieces.sign(_FATES[Fate.ACCEPTED_UNISSUED], nonces)
        about = " accepted of which no issuance is stored: beside the bar above, not in it"
        lines.append(joined(element("a", mark, href=href), about))
    items = [element("li", line) for line in lines]
    return joined(pieces.heading("Claims"), element("ul", *items, class_="at-facts"))


def _probes(desk: Desk) -> Markup:
    alive = {ProducerCondition.LIVE, ProducerCondition.SILENT}
    servers = [one for one in desk.completeness().producers if one.condition in alive]
    title = pieces.heading("Servers and their ledger")
    if desk.everything.scope.tenant is not None:
        told = "Servers serve all tenants; a viewer of one is not told of them."
        return joined(title, pieces.note(told))
    if not servers:
        return joined(title, pieces.note("No server reports at present."))
    columns = (Column("Server"), Column("Ledger"), Column("Looked at"), Column("Gate"))
    rows = (
        ("at-row-bad" if one.ledger_probe is Probe.FAILING else None, _probe(one, desk))
        for one in sorted(servers, key=lambda one: (one.service, one.instance))
    )
    return joined(title, pieces.table("Servers and their ledger", columns, rows))


def _probe(one: ProducerStatus, desk: Desk) -> tuple[Child, ...]:
    at = one.ledger_probe_at
    return (
        joined(element("bdi", one.service), " · ", element("bdi", one.instance)),
        pieces.probe(one.ledger_probe),
        "—" if at is None else pieces.at(at, formats.ago(at, desk.view.now)),
        pieces.gate(one.gate_state, one.gate_reason),
    )


def _outages(desk: Desk) -> Markup:
    title = pieces.heading("Outages", "refusals for want of the ledger, less than 5 min apart")
    found = desk.answers.ledger_outages(desk.view.time_range)
    if not found:
        none = "None in this range: no server refused because its ledger could not be asked."
        return joined(title, pieces.note(none))
    columns = (
        Column("Server"),
        Column("Cause"),
        Column("First refusal (UTC)", "at-nowrap"),
        Column("Last refusal (UTC)", "at-nowrap"),
        Column("Lasted", "at-nowrap at-figures"),
        Column("Refusals", "at-figures"),
    )
    rows = ((None, _outage(one, desk)) for one in found[:_OUTAGES_SHOWN])
    more = None
    if len(found) > _OUTAGES_SHOWN:
        more = pieces.note(f"The latest {_OUTAGES_SHOWN} of {formats.count(len(found))}.")
    return joined(title, pieces.table("Outages of the ledger", columns, rows), more)


def _outage(one: LedgerOutage, desk: Desk) -> tuple[Child, ...]:
    end = one.last + formats.INSTANT_STEP  # the end of a range is out
    href = desk.view.between("refusals", one.first, end, reason=one.reason.value)
    return (
        joined(element("bdi", one.service), " · ", element("bdi", one.instance)),
        words.REASONS[one.reason],
        pieces.instant(one.first),
        pieces.instant(one.last),
        formats.gap(one.last - one.first),
        element("a", formats.count(one.refusals), href=href),
    )
