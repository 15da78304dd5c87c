"""Pipeline: what each producer emitted, what arrived, what lacks, and what could not be stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from approvaltrail.dashboard import formats, pieces, text, words
from approvaltrail.dashboard.desk import Desk
from approvaltrail.dashboard.markup import Child, Markup, element, joined, long_value
from approvaltrail.dashboard.palette import Sign, Tone
from approvaltrail.dashboard.pieces import Column
from approvaltrail.store.answers import (
    Completeness,
    DeadLetter,
    Gap,
    ProducerCondition,
    ProducerStatus,
)

_DEAD_SHOWN: Final = 100
_GAPS_SHOWN: Final = 3
REDRIVE: Final = "approvaltrail redrive"
"""The command that sends dead letters through the sink again."""
RETIRE: Final = 'approvaltrail retire PRODUCER --reason "why it will not come back"'
"""The command that declares a producer gone."""

_CONDITIONS: Final = {
    ProducerCondition.LIVE: Sign("live", "●", Tone.ACCEPTED),
    ProducerCondition.CLOSED: Sign("closed in order", "■", Tone.COMPLETED),
    ProducerCondition.SILENT: Sign("silent", "◐", Tone.REFUSED),
    ProducerCondition.RETIRED: Sign("retired", "○", Tone.UNKNOWN),
}

_COLUMNS = (
    Column("Producer"),
    Column("State", "at-nowrap"),
    Column("Emitted", "at-figures"),
    Column("Stored", "at-figures"),
    Column("Dead-lettered", "at-figures"),
    Column("In flight", "at-figures"),
    Column("Lacking"),
    Column("Stored up to", "at-nowrap"),
    Column("Last heard", "at-nowrap"),
    Column("Journal", "at-nowrap"),
    Column("Gate"),
    Column("Ledger", "at-nowrap"),
)


def show(desk: Desk) -> None:
    """Draw the page."""
    everything = desk.everything
    everything.soon(everything.arrivals, desk.view.now)
    everything.soon(everything.dead_letters, _DEAD_SHOWN)
    found = desk.completeness()
    text.show(_reasons(found))
    text.show(_sink(desk))
    working = [one for one in found.producers if one.condition is not ProducerCondition.RETIRED]
    if working:
        for service, group in groupby(sorted(working, key=_order), key=lambda one: one.service):
            text.show(_service(service, list(group), desk))
        text.show(_explained(working))
    elif desk.everything.scope.tenant is not None:
        told = "Producers serve all tenants; a viewer of one sees the state alone."
        text.show(joined(pieces.heading("Producers"), pieces.note(told)))
    else:
        text.show(pieces.heading("Producers"))
        pieces.empty("No producer has reported yet", "A producer reports seconds after it starts.")
    _retired(found)
    _dead_letters(desk, found)


def _order(one: ProducerStatus) -> tuple[str, str, str]:
    return one.service, one.instance, one.producer_id


def _reasons(found: Completeness) -> Markup:
    if not found.reasons:
        return joined()
    items = [element("li", reason) for reason in found.reasons]
    return pieces.section("Why it is not called complete", element("ul", *items, class_="at-facts"))


def _sink(desk: Desk) -> Markup:
    found = desk.everything.arrivals(desk.view.now)
    title = pieces.heading("Sink", "as far as what it stored can tell")
    if found.last_stored_at is None:
        return joined(title, pieces.note("Nothing is stored yet."))
    ago = formats.ago(found.last_stored_at, desk.view.now)
    window = formats.gap(found.window)
    rate = f"{found.stored / found.window.total_seconds():.3g} a second"
    facts: list[tuple[str, Child, Child]] = [
        ("Last stored", pieces.at(found.last_stored_at, ago), formats.clock(found.last_stored_at)),
        ("Stored lately", formats.counted(found.stored, "event"), f"in the last {window}, {rate}"),
    ]
    if found.median_delay is not None and found.p99_delay is not None:
        median, p99 = formats.gap(found.median_delay), formats.gap(found.p99_delay)
        facts.append(("Journal to store", median, f"median; 99 % within {p99}"))
    cards = [
        element(
            "div",
            element("span", name, class_="at-small"),
            element("span", value, class_="at-fact at-figures"),
            element("span", below, class_="at-small at-figures"),
            class_="at-card",
        )
        for name, value, below in facts
    ]
    return joined(title, element("div", *cards, class_="at-cards"))


def _service(service: str, group: Sequence[ProducerStatus], desk: Desk) -> Markup:
    counted = Counter(one.condition for one in group)
    shown = [
        f"{formats.count(counted[condition])} {sign.word}"
        for condition, sign in _CONDITIONS.items()
        if counted[condition]
    ]
    title = pieces.heading(service, words.listed(shown))
    rows = [("at-row-bad" if one.missing or one.lost else None, _cells(one, desk)) for one in group]
    name = f"Producers of {service}"
    return joined(title, pieces.table(name, _COLUMNS, rows, broad=True))


def _explained(working: Iterable[ProducerStatus]) -> Markup:
    note = pieces.note(
        "Emitted = stored + dead-lettered + in flight + lacking + declared lost, as sets of "
        "numbers: each producer numbers its events without gaps."
    )
    if not any(one.condition is ProducerCondition.SILENT for one in working):
        return note
    command = element("span", RETIRE, class_="at-mono at-whole")
    retire = pieces.note("A silent producer that will not come back is retired by: ", command)
    return note + retire


def _cells(one: ProducerStatus, desk: Desk) -> Sequence[Child]:
    now = desk.view.now
    heard = one.last_heartbeat_at
    pending = f"{formats.count(one.pending)} pending"
    return (
        pieces.two_lines(element("bdi", one.instance), long_value(one.producer_id)),
        pieces.two_lines(pieces.sign(_CONDITIONS[one.condition]), one.condition_reason),
        formats.count(one.emitted),
        formats.count(one.stored),
        formats.count(one.dead_lettered),
        formats.count(one.in_flight),
        _lacking(one),
        pieces.instant(one.complete_until),
        "never" if heard is None else pieces.at(heard, formats.ago(heard, now)),
        pieces.two_lines(f"{one.journal_fill:.0%} full", pending),
        _gate(one),
        _ledger(one, desk),
    )


def _lacking(one: ProducerStatus) -> Child:
    parts: list[Child] = []
    if one.missing:
        mark = Sign(formats.counted(one.missing, "event"), "▲", Tone.REPLAYED)
        parts.append(pieces.two_lines(pieces.sign(mark), _ranges(one.gaps)))
    if one.lost:
        lost = sum(gap.events for gap in one.lost)
        mark = Sign(f"{formats.count(lost)} declared lost", "✖\ufe0e", Tone.REPLAYED)
        parts.append(pieces.two_lines(pieces.sign(mark), _ranges(one.lost)))
    if one.cloned_numbers:
        words_ = f"{formats.count(one.cloned_numbers)} numbers stand for two events each"
        parts.append(element("div", words_))
    return joined(*parts) if parts else "nothing"


def _ranges(gaps: Sequence[Gap]) -> str:
    shown = [
        formats.count(gap.first)
        if gap.first == gap.last
        else f"{formats.count(gap.first)}–{formats.count(gap.last)}"
        for gap in gaps[:_GAPS_SHOWN]
    ]
    return ", ".join(shown) + (" …" if len(gaps) > _GAPS_SHOWN else "")


def _gate(one: ProducerStatus) -> Child:
    shown = pieces.gate(one.gate_state, one.gate_reason)
    if not one.unrecorded_refusals:
        return shown
    unrecorded = f"{formats.count(one.unrecorded_refusals)} refusals to record"
    return joined(shown, pieces.two_lines(None, unrecorded))


def _ledger(one: ProducerStatus, desk: Desk) -> Child:
    at = one.ledger_probe_at
    when = None if at is None else formats.ago(at, desk.view.now)
    return pieces.two_lines(pieces.probe(one.ledger_probe), when)


def _retired(found: Completeness) -> None:
    gone = [one for one in found.producers if one.condition is ProducerCondition.RETIRED]
    if not gone:
        return
    columns = (
        Column("Producer"),
        Column("Service"),
        Column("Why"),
        Column("Stored", "at-figures"),
        Column("Lacking"),
        Column("Last heard", "at-nowrap"),
    )
    rows = ((None, _gone(one)) for one in sorted(gone, key=_order))
    table = pieces.table("Retired producers", columns, rows)
    text.show(joined(pieces.heading("Retired producers"), table))


def _gone(one: ProducerStatus) -> Sequence[Child]:
    name = element("bdi", one.instance) if one.instance else None
    return (
        pieces.two_lines(name, long_value(one.producer_id)),
        element("bdi", one.service) if one.service else "never heard from",
        element("bdi", one.condition_reason or "no reason given"),
        formats.count(one.stored),
        _lacking(one),
        pieces.instant(one.last_heartbeat_at),
    )


def _dead_letters(desk: Desk, found: Completeness) -> None:
    text.show(pieces.heading("Dead letters"))
    letters = desk.everything.dead_letters(_DEAD_SHOWN)
    if desk.everything.scope.tenant is not None:
        told = "What cannot be read belongs to no tenant; a viewer of one is not told of it."
        text.show(pieces.note(told))
        return
    if not letters:
        text.show(pieces.note("None: every message that arrived could be stored."))
        return
    columns = (
        Column("Dead-lettered (UTC)", "at-nowrap"),
        Column("Cause"),
        Column("Position", "at-nowrap"),
        Column("Producer", "at-nowrap"),
        Column("Number", "at-figures"),
        Column("Re-driven"),
    )
    text.show(pieces.table("Dead letters", columns, ((None, _letter(one)) for one in letters)))
    if found.dead_letters > len(letters):
        text.show(pieces.note(f"The latest of {formats.count(found.dead_letters)}."))
    text.show(
        pieces.note(
            "Once the cause is mended, send them through the sink again. --dry-run counts them "
            "first; --cause, --topic, --partition and --offset choose some."
        )
    )
    text.copyable(REDRIVE)


def _letter(one: DeadLetter) -> Sequence[Child]:
    return (
        pieces.instant(one.dead_lettered_at),
        pieces.two_lines(words.DEAD_LETTER_CAUSES[one.cause], one.detail),
        element("span", f"{one.topic} / {one.partition} / {one.offset}", class_="at-mono"),
        long_value(one.producer_id),
        "unknown" if one.sequence is None else formats.count(one.sequence),
        "not yet" if one.redriven_at is None else pieces.instant(one.redriven_at),
    )
