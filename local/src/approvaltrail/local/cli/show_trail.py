"""One nonce's trail as a timeline with the gaps between its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from rich.text import Text

from approvaltrail.dashboard.words import ended
from approvaltrail.local.cli.labelling import Labelled
from approvaltrail.local.cli.output import say, table
from approvaltrail.local.cli.show_events import what
from approvaltrail.local.cli.show_replays import label_cell
from approvaltrail.local.cli.text import cell, middle
from approvaltrail.local.cli.times import gap, iso
from approvaltrail.schemas.events import EventType, RecordedEvent
from approvaltrail.store.answers import StoredEvent, Trail


def show(trail: Trail, labelled: Sequence[Labelled]) -> None:
    """Print the sentence, the timeline, the labels' reasons and what is missing."""
    say(f"Nonce {trail.nonce}")
    say(_sentence(trail))
    steps = sorted(_steps(trail, labelled), key=lambda step: step[0].occurred_at)
    if steps:
        columns = ("time (UTC)", "after", "event", "principal", "session", "from", "target", "")
        table(columns, _rows(steps))
    if len(trail.reuses) < trail.reuses_total:
        say(f"{len(trail.reuses)} of {trail.reuses_total} reuses shown: the first and the last")
    for piece in trail.missing:
        say(f"missing {piece.piece}: {piece.explanation}")
    if trail.withheld:
        say(f"{trail.withheld} presentations from other tenants are withheld")


def _sentence(trail: Trail) -> str:
    if not (trail.issuance or trail.acceptance or trail.reuses or trail.early_refusals):
        if trail.claimed_total:
            return (
                f"Never issued as far as the store knows: {trail.claimed_total} presentations "
                "only claimed it, without a valid signature."
            )
        return "Nothing is known of this nonce."
    parts = []
    if trail.issuance is not None:
        issued = trail.issuance.event
        parts.append(
            f"Issued {iso(issued.occurred_at)} to {issued.principal or 'somebody unknown'} "
            f"for {issued.tool} · {issued.target or 'no target'}"
        )
    parts.append(_acceptance(trail))
    if trail.reuses:
        ran = sum(one.presentation.event.event_type is EventType.ACCEPTED for one in trail.reuses)
        times = "once" if trail.reuses_total == 1 else f"{trail.reuses_total} times"
        first = trail.reuses[0].since_acceptance
        after = f", first {gap(first)} after the acceptance" if first is not None else ""
        whole = len(trail.reuses) == trail.reuses_total
        none = "none of the reuses ran" if whole else "none of the reuses shown ran"
        parts.append(f"presented again {times}{after}")
        parts.append(
            f"{ran} accepted again, so the work may have run more than once" if ran else none
        )
    return "; ".join(parts) + "."


def _acceptance(trail: Trail) -> str:
    if trail.acceptance is None:
        return "no acceptance is stored"
    words = "accepted"
    if trail.issuance is not None:
        span = trail.acceptance.event.occurred_at - trail.issuance.event.occurred_at
        words += f" {gap(span)} later"
    completion = trail.completions[0] if trail.completions else None
    return f"{words}, {ended(completion)}"


def _steps(trail: Trail, labelled: Sequence[Labelled]) -> Iterator[tuple[RecordedEvent, Text]]:
    def plain(stored: StoredEvent | None, words: str = "") -> Iterator[tuple[RecordedEvent, Text]]:
        if stored is not None:
            yield stored.event, Text(words)

    yield from plain(trail.issuance)
    yield from plain(trail.acceptance)
    for completion in trail.completions:
        yield from plain(completion)
    for refusal in trail.early_refusals:
        yield from plain(refusal, "before any acceptance")
    for claimed in trail.claimed:
        yield from plain(claimed, "claimed only: the signature did not hold")
    for reuse, found in labelled:
        words = label_cell(found)
        words.append(f" reuse {reuse.number}/{reuse.total}")
        if found.reasons:
            words.append_text(cell(": " + "; ".join(found.reasons)))
        yield reuse.presentation.event, words


def _rows(steps: list[tuple[RecordedEvent, Text]]) -> Iterator[list[Text]]:
    before: datetime | None = None
    for event, words in steps:
        span = event.occurred_at - before if before is not None else timedelta(0)
        yield [
            cell(iso(event.occurred_at)),
            cell(f"+ {gap(span)}" if before is not None else ""),
            what(event),
            cell(middle(event.principal or "–", 32)),
            cell(middle(event.session_id or "–", 16)),
            cell(event.client_address or "–"),
            cell(f"{event.tool} · {middle(event.target or '–', 32)}"),
            words,
        ]
        before = event.occurred_at
