"""The table of reuses: every row is linked to the trail of its own nonce by its own link.

A link stands in the row that it belongs to, so no refresh, sort or filter can point it elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from approvaltrail.dashboard import formats, pieces, words
from approvaltrail.dashboard.markup import Child, Markup, element, joined, long_value
from approvaltrail.dashboard.pieces import Column
from approvaltrail.dashboard.view import View
from approvaltrail.store.answers import Difference, Reuse
from approvaltrail.store.labels import Label, LabelThresholds, label_of, recent_nonces

_COLUMNS = (
    Column("Time (UTC)", "at-nowrap"),
    Column("Nonce", "at-nowrap"),
    Column("Label", "at-nowrap"),
    Column("Outcome", "at-outcome"),
    Column("Tool · target", "at-aim"),
    Column("Issued to", "at-who"),
    Column("First spent by", "at-who"),
    Column("Gap", "at-nowrap at-figures"),
    Column("Differs", "at-differs"),
    Column("Trail", "at-nowrap"),
)


def labelled(
    reuses: Sequence[Reuse], thresholds: LabelThresholds, among: Iterable[Reuse] | None = None
) -> list[tuple[Reuse, Label]]:
    """Label each reuse, counting a caller's other reuses among those given."""
    others = list(reuses if among is None else among)
    return [
        (reuse, label_of(reuse, thresholds, recent_nonces(reuse, others, thresholds)))
        for reuse in reuses
    ]


def build(rows: Iterable[tuple[Reuse, Label | None]], view: View) -> Markup:
    """Build the table, in the order given."""
    cells = ((None, _cells(*row, view)) for row in rows)
    return pieces.table("Reuses", _COLUMNS, cells, broad=True)


def _cells(reuse: Reuse, label: Label | None, view: View) -> Sequence[Child]:
    event = reuse.presentation.event
    trail = view.href("trail", nonce=event.nonce)
    return (
        pieces.instant(event.occurred_at),
        pieces.two_lines(long_value(event.nonce, href=trail), f"{reuse.number} of {reuse.total}"),
        pieces.label(label),
        pieces.outcome(event, reuse=True),
        pieces.aim(event),
        _issued(reuse),
        _spent(reuse),
        "—" if reuse.since_acceptance is None else formats.gap(reuse.since_acceptance),
        differs(reuse.differences),
        element("a", "Trail →", href=trail, aria_label=f"Trail of nonce {event.nonce}"),
    )


def differs(differences: Iterable[Difference]) -> Markup:
    """Name the fields that differ from the accepting call, those not to be trusted marked so."""
    parts: list[Child] = []
    for one in differences:
        name = words.field(one.field)
        values = f"accepted: {one.accepted or 'unknown'} → presented: {one.presented or 'unknown'}"
        if one.trusted:
            parts.append(element("span", name, title=values))
        else:
            values += " (self-declared or of unknown source)"
            parts.append(element("span", f"{name}?", title=values, class_="at-unknown"))
    if not parts:
        return element("span", "nothing", class_="at-unknown")
    commas: list[Child] = [parts[0]]
    for part in parts[1:]:
        commas += [", ", part]
    return joined(*commas)


def _issued(reuse: Reuse) -> Markup:
    if reuse.issuance is None:
        return element("span", "not recorded", class_="at-unknown")
    event = reuse.issuance.event
    before = reuse.presentation.event.occurred_at - event.occurred_at
    return pieces.two_lines(pieces.who(event, pieces.SHORT_NAME), f"{formats.gap(before)} before")


def _spent(reuse: Reuse) -> Markup:
    if reuse.acceptance is None:
        spent_at = reuse.presentation.event.spent_at
        known = "not recorded" if spent_at is None else "known to the ledger alone"
        when = None if spent_at is None else formats.clock(spent_at)
        return pieces.two_lines(element("span", known, class_="at-unknown"), when)
    event = reuse.acceptance.event
    return pieces.two_lines(pieces.who(event, pieces.SHORT_NAME), formats.clock(event.occurred_at))
