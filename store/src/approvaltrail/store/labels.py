"""What may be said of a reuse: one total function, and never a verdict.

A label weighs only what can be trusted: the authenticated principal, credential and session, and
fields that the server judged itself. Self-declared fields and addresses of unknown source neither
make nor clear a label. Missing data never clears one: a known reason for review holds beside any
number of unknowns, and "consistent with a retry" needs every condition to be known and met.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from approvaltrail.schemas.events import EventType, Reason, RecordedEvent
from approvaltrail.store.answers import Reuse


class LabelKind(StrEnum):
    """The three things that may be said, the most urgent first."""

    NEEDS_REVIEW = "needs_review"
    """At least one known reason to look."""
    NOT_ENOUGH_KNOWN = "not_enough_known"
    """No reason to look is known, and a retry is not shown either."""
    CONSISTENT_WITH_RETRY = "consistent_with_retry"
    """All that is known and trusted is as a client's retry would leave it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelThresholds:
    """Where a retry ends. The defaults fit clients that time out at 60 s."""

    retry_window: timedelta = timedelta(seconds=120)
    """A retry comes at most this long after the acceptance."""
    retry_reuses: int = 3
    """A retrying client gives up after at most this many."""
    caller_window: timedelta = timedelta(minutes=5)
    """Reused nonces of one caller count together within this time."""
    caller_nonces: int = 2
    """This many reused nonces of one caller within the window need review."""
    concurrent_window: timedelta = timedelta(seconds=1)
    """Presentations this close together are called concurrent."""


DEFAULT_THRESHOLDS: Final = LabelThresholds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What is said of one reuse, and why. No text here repeats a caller's value."""

    kind: LabelKind
    reasons: tuple[str, ...]
    """Why this label and no milder one; empty only for `CONSISTENT_WITH_RETRY`."""
    notes: tuple[str, ...]
    """What else helps to read it, such as `concurrent`."""
    unmet: tuple[str, ...]
    """What would have had to be otherwise for "consistent with a retry"; empty for that label."""


ELSEWHERE: Final = frozenset(
    {Reason.WRONG_TENANT, Reason.WRONG_TOOL, Reason.WRONG_TARGET, Reason.PLAN_CHANGED}
)
"""Refusals that say: the token was taken to something it was not issued for."""

_ELSEWHERE_WORDS: Final = {
    Reason.WRONG_TENANT: ("tenant", "presented for another tenant"),
    Reason.WRONG_TOOL: ("tool", "presented to another tool"),
    Reason.WRONG_TARGET: ("target", "presented for another target"),
    Reason.PLAN_CHANGED: ("plan hash", "presented with another plan"),
}
"""The field that such a refusal is about, and how it reads."""

_IDENTITY: Final = {
    "principal": "principal",
    "credential_id": "credential",
    "session_id": "session",
}


def label_of(reuse: Reuse, thresholds: LabelThresholds, recent_nonces_of_caller: int) -> Label:
    """Label a reuse. Total: every reuse gets exactly one label, whatever is missing.

    `recent_nonces_of_caller` is how many distinct nonces this caller reused around this
    presentation, this one included (see `recent_nonces`).
    """
    unmet = tuple(_unmet(reuse, thresholds, recent_nonces_of_caller))
    review = tuple(_reasons_for_review(reuse, thresholds, recent_nonces_of_caller))
    notes = tuple(_notes(reuse, thresholds))
    if review:
        return Label(kind=LabelKind.NEEDS_REVIEW, reasons=review, notes=notes, unmet=unmet)
    if unmet:
        unknown = tuple(_unknowns(reuse)) or unmet
        return Label(kind=LabelKind.NOT_ENOUGH_KNOWN, reasons=unknown, notes=notes, unmet=unmet)
    return Label(kind=LabelKind.CONSISTENT_WITH_RETRY, reasons=(), notes=notes, unmet=())


def worst(labels: Iterable[Label]) -> Label | None:
    """Return the most urgent of several labels, or None where there are none."""
    order = list(LabelKind)
    return min(labels, key=lambda label: order.index(label.kind), default=None)


def caller_of(event: RecordedEvent) -> tuple[str | None, str] | None:
    """Return who presented, as far as it is authenticated, or None where nobody is."""
    who = event.principal or event.credential_id
    return None if who is None else (event.tenant, who)


def recent_nonces(reuse: Reuse, among: Iterable[Reuse], thresholds: LabelThresholds) -> int:
    """Count the distinct nonces that this reuse's caller reused around it, its own included."""
    here = reuse.presentation.event
    caller = caller_of(here)
    nonces = {here.nonce}
    if caller is not None:
        for other in among:
            event = other.presentation.event
            near = abs(event.occurred_at - here.occurred_at) <= thresholds.caller_window
            if near and caller_of(event) == caller:
                nonces.add(event.nonce)
    return len(nonces)


def _reasons_for_review(reuse: Reuse, thresholds: LabelThresholds, nonces: int) -> Iterable[str]:
    event = reuse.presentation.event
    about, elsewhere = (None, None)
    if event.reason in ELSEWHERE:
        about, elsewhere = _ELSEWHERE_WORDS[event.reason]
        yield elsewhere
    for field in _differing(reuse):
        if field != about:
            yield f"another {field} than the accepted call"
    if reuse.total > thresholds.retry_reuses:
        yield f"more than {thresholds.retry_reuses} reuses of this nonce"
    if reuse.since_acceptance is not None and reuse.since_acceptance > thresholds.retry_window:
        yield f"later than {_seconds(thresholds.retry_window)} after the acceptance"
    if event.reason is Reason.EXPIRED:
        yield "presented after it had expired"
    if event.event_type is EventType.ACCEPTED:
        yield "accepted again: this tool does not spend its nonce, so the work may have run twice"
    if nonces >= thresholds.caller_nonces:
        minutes = thresholds.caller_window / timedelta(minutes=1)
        yield f"one caller reused several nonces within {minutes:g} min"


def _unmet(reuse: Reuse, thresholds: LabelThresholds, nonces: int) -> Iterable[str]:
    acceptance = reuse.acceptance.event if reuse.acceptance else None
    event = reuse.presentation.event
    for name, word in _IDENTITY.items():
        here = getattr(event, name)
        if here is None or acceptance is None or getattr(acceptance, name) != here:
            yield f"the same authenticated {word} as the accepted call"
    if set(_differing(reuse)) - set(_IDENTITY.values()):
        yield "no other trusted field differs from the accepted call"
    gap = reuse.since_acceptance
    if gap is None or not timedelta(0) <= gap <= thresholds.retry_window:
        yield f"at most {_seconds(thresholds.retry_window)} after the acceptance"
    if reuse.total > thresholds.retry_reuses:
        yield f"at most {thresholds.retry_reuses} reuses"
    if event.event_type is not EventType.REPLAYED:
        yield "refused as a replay, with nothing else wrong"
    if nonces >= thresholds.caller_nonces:
        yield "no other nonce reused by the same caller around it"


def _unknowns(reuse: Reuse) -> Iterable[str]:
    event = reuse.presentation.event
    if reuse.acceptance is None:
        yield "the accepted call is not stored, so there is nothing to compare with"
    for name, word in _IDENTITY.items():
        here = getattr(event, name)
        there = getattr(reuse.acceptance.event, name) if reuse.acceptance else here
        if here is None or there is None:
            yield f"the {word} is not known on both calls"
    if reuse.since_acceptance is None:
        yield "how long after the acceptance is not known"
    elif reuse.since_acceptance < timedelta(0):
        yield "the clocks of the servers disagree: it seems to precede the acceptance"
    if event.event_type is EventType.REFUSED:
        yield "refused for another cause before the ledger was asked"


def _notes(reuse: Reuse, thresholds: LabelThresholds) -> Iterable[str]:
    event = reuse.presentation.event
    gap = reuse.since_acceptance
    finished = reuse.completion.event.occurred_at if reuse.completion else None
    running = finished is not None and event.occurred_at < finished
    if running or (gap is not None and abs(gap) <= thresholds.concurrent_window):
        yield "concurrent: presented while the accepted call was still in hand"
    elif (
        event.event_type is EventType.REPLAYED
        and gap is not None
        and gap <= thresholds.retry_window
        and not _differing(reuse)
    ):
        yield "possible lost answer: the caller may not have seen that the work was done"


def _differing(reuse: Reuse) -> tuple[str, ...]:
    """Name the trusted fields that are known on both calls and differ, each once, in order.

    A difference whose one side is unknown is no difference: it is something not known.
    """
    found: dict[str, None] = {}
    if reuse.acceptance is not None:
        for name, word in _IDENTITY.items():
            here = getattr(reuse.presentation.event, name)
            there = getattr(reuse.acceptance.event, name)
            if here is not None and there is not None and here != there:
                found[word] = None
    for difference in reuse.differences:
        known = difference.accepted is not None and difference.presented is not None
        if difference.trusted and known:
            found[_IDENTITY.get(difference.field, difference.field.replace("_", " "))] = None
    return tuple(found)


def _seconds(window: timedelta) -> str:
    return f"{window.total_seconds():g} s"
