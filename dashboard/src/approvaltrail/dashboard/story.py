"""A trail told: one sentence that sums it up, and a timeline with the gaps between.

What is missing is said in its place; nothing is inferred that is not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from approvaltrail.dashboard import formats, pieces, reuse_table, words
from approvaltrail.dashboard.markup import NAME, Child, Markup, element, joined, long_value
from approvaltrail.schemas.events import EventType, RecordedEvent
from approvaltrail.store.answers import MissingPiece, Reuse, StoredEvent, Trail
from approvaltrail.store.labels import Label


def summary(trail: Trail) -> Markup:
    """Sum the trail up in a sentence or three."""
    told: list[Child] = [_issued(trail), _accepted(trail)]
    if trail.early_refusals and trail.acceptance is None:
        told.append(f"refused {formats.counted(len(trail.early_refusals), 'time')}")
    if trail.reuses_total:
        told.append(_reused(trail))
    parts: list[Child] = []
    for index, piece in enumerate(filter(None, told)):
        parts += ["; " if index else "", piece]
    return element("p", *parts, ". ", _what_ran(trail), class_="at-lead")


def _issued(trail: Trail) -> Markup:
    if trail.issuance is None:
        return joined("Issuance not stored")
    event = trail.issuance.event
    whom = (" to ", pieces.who(event))
    return joined("Issued ", pieces.at(event.occurred_at), *whom, " for ", _aim(event))


def _accepted(trail: Trail) -> Markup:
    if trail.acceptance is None:
        spent = next((one for one in trail.reuses if one.presentation.event.spent_at), None)
        if spent is not None:
            return joined("spent, as the ledger knows, but the acceptance is not stored")
        return joined("never accepted, as far as is stored")
    event = trail.acceptance.event
    when: Child = pieces.at(event.occurred_at)
    if trail.issuance is not None:
        after = event.occurred_at - trail.issuance.event.occurred_at
        when = f"{formats.gap(after)} later"
    return joined("accepted ", when, ", ", words.ended(_first_completion(trail)))


def _reused(trail: Trail) -> Markup:
    times = formats.counted(trail.reuses_total, "time")
    first = trail.reuses[0]
    after = None
    if first.since_acceptance is not None:
        after = f", first {formats.gap(first.since_acceptance)} after the acceptance"
    trusted = [words.field(one.field) for one in first.differences if one.trusted]
    other = f", with another {words.listed(trusted)}" if trusted else None
    return joined("presented again ", element("strong", times), after, other)


def _what_ran(trail: Trail) -> str:
    if not trail.reuses_total:
        return ""
    shown = len(trail.reuses)
    again = sum(one.presentation.event.event_type is EventType.ACCEPTED for one in trail.reuses)
    of = "" if shown == trail.reuses_total else f" Of the {formats.count(shown)} shown:"
    if again:
        subject = "One reuse was" if again == 1 else f"{formats.count(again)} reuses were"
        return f"{of} {subject} accepted again, so the work may have run more than once."
    return f"{of} None of the reuses ran."


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One row of the timeline."""

    at: datetime
    stored: StoredEvent
    reuse: Reuse | None = None
    label: Label | None = None


def timeline(trail: Trail, labels: Sequence[tuple[Reuse, Label | None]]) -> Markup:
    """Build the rows, oldest first, with the gaps between and what is missing in its place."""
    steps = sorted(_steps(trail, labels), key=lambda step: (step.at, step.stored.event.event_id))
    rows: list[Child] = list(_missing(trail, "issuance"))
    before: Step | None = None
    for step in steps:
        if before is not None:
            rows.append(_between(before, step, trail))
        if step.reuse is not None and step.reuse.number == 1:
            rows += [*_missing(trail, "acceptance"), *_missing(trail, "completion")]
        rows.append(_row(step, trail))
        before = step
    if not trail.reuses:
        rows += [*_missing(trail, "acceptance"), *_missing(trail, "completion")]
    return element("ol", *rows, class_="at-timeline")


def _steps(trail: Trail, labels: Sequence[tuple[Reuse, Label | None]]) -> Iterable[Step]:
    said = {reuse.presentation.event.event_id: label for reuse, label in labels}
    plain = [trail.issuance, trail.acceptance, *trail.completions, *trail.early_refusals]
    for stored in plain:
        if stored is not None:
            yield Step(at=stored.event.occurred_at, stored=stored)
    for reuse in trail.reuses:
        stored = reuse.presentation
        label = said.get(stored.event.event_id)
        yield Step(at=stored.event.occurred_at, stored=stored, reuse=reuse, label=label)


def _between(before: Step, step: Step, trail: Trail) -> Markup:
    skipped = None
    if before.reuse is not None and step.reuse is not None:
        left_out = step.reuse.number - before.reuse.number - 1
        if left_out > 0 and trail.reuses_total > len(trail.reuses):
            skipped = f" · {formats.counted(left_out, 'reuse')} in between not shown"
    return element("li", f"+ {formats.gap(step.at - before.at)}", skipped, class_="at-gap")


def _row(step: Step, trail: Trail) -> Markup:
    event = step.stored.event
    number = None
    if step.reuse is not None:
        name = f"reuse {step.reuse.number} of {trail.reuses_total}"
        number = element("span", name, class_="at-number")
    when = pieces.instant(event.occurred_at)
    what = pieces.outcome(event, reuse=step.reuse is not None)
    about = element("div", *_details(step, trail), class_="at-details")
    mark = pieces.label(step.label) if step.label is not None else None
    head = element("div", what, number, mark, class_="at-step-head")
    tone = event.event_type.value
    body = element("div", head, about)
    return element("li", element("div", when), body, class_=f"at-step at-edge-{tone}")


def _details(step: Step, trail: Trail) -> Iterable[Child]:
    event = step.stored.event
    if event.event_type is EventType.COMPLETED:
        yield element("div", "of the acceptance ", long_value(event.acceptance_id))
        return
    yield element("div", *_dotted(_caller(event)))
    if event.event_type is EventType.ISSUED:
        yield element("div", _aim(event))
        if event.plan_summary:
            yield element("div", event.plan_summary, class_="at-summary")
    if event.event_type is EventType.ACCEPTED and event.ledgered:
        yield element("div", "spent in the ledger by ", long_value(event.event_id))
    if step.reuse is not None:
        ran = "" if event.event_type is EventType.ACCEPTED else "nothing ran · "
        differs = reuse_table.differs(step.reuse.differences)
        yield element("div", ran, "differs from the accepted call: ", differs)
    if event.spent_claim_id and trail.acceptance is None:
        yield element(
            "div", "the ledger names the spending call ", long_value(event.spent_claim_id)
        )


def _caller(event: RecordedEvent) -> list[Child]:
    parts: list[Child] = [pieces.who(event)]
    if event.principal_kind.value != "unknown":
        parts.append(event.principal_kind.value)
    if event.session_id:
        parts.append(joined("session ", long_value(event.session_id)))
    if event.client_address:
        trust = element(
            "span", f" ({words.address_trust(event.address_source)})", class_="at-small"
        )
        parts.append(joined(long_value(event.client_address), trust))
    if event.client_name:
        quoted = joined("says it is ", element("bdi", event.client_name))
        parts.append(element("span", quoted, class_="at-small", title="self-declared"))
    return parts


def _dotted(parts: list[Child]) -> Iterable[Child]:
    for index, part in enumerate(parts):
        if index:
            yield " · "
        yield part


def _missing(trail: Trail, piece: str) -> Iterable[Markup]:
    for one in trail.missing:
        if one.piece == piece:
            yield _missing_row(one)


def _missing_row(one: MissingPiece) -> Markup:
    mark = element("span", "?", class_="at-icon at-unknown")
    what = element("strong", f"{one.piece} missing")
    body = element("div", mark, " ", what, ": ", one.explanation)
    return element("li", element("div"), body, class_="at-step at-edge-unknown")


def _aim(event: RecordedEvent) -> Markup:
    """Say which tool, on what, in which tenant."""
    target = joined(" · ", long_value(event.target, keep=NAME)) if event.target else None
    tenant = joined(" in tenant ", element("bdi", event.tenant)) if event.tenant else None
    return joined(element("bdi", event.tool, class_="at-mono"), target, tenant)


def _first_completion(trail: Trail) -> StoredEvent | None:
    if trail.acceptance is None:
        return None
    accepted = trail.acceptance.event.event_id
    mine = [one for one in trail.completions if one.event.acceptance_id == accepted]
    return mine[0] if mine else None
