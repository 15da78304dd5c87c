"""A label is total, weighs trusted data alone, and missing data never clears it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.strategies import recorded_events
from tests.support.story import Story

from approvaltrail.dashboard.labelling import by_themselves
from approvaltrail.schemas.events import EventType, NonceTrust, Outcome, Reason, RecordedEvent
from approvaltrail.store.answers import Difference, Reuse, StoredEvent
from approvaltrail.store.labels import (
    DEFAULT_THRESHOLDS,
    LabelKind,
    LabelThresholds,
    caller_of,
    label_of,
    recent_nonces,
    worst,
)

THEN = datetime(2026, 3, 9, 6, 0, tzinfo=UTC)
FIELDS = ("principal", "credential_id", "session_id", "client_address", "client_name", "target")


def stored(event: RecordedEvent) -> StoredEvent:
    return StoredEvent(
        event=event,
        partition=0,
        offset=event.sequence,
        stored_at=event.recorded_at,
        schema_fingerprint="00" * 8,
    )


def a_retry(gap: timedelta = timedelta(seconds=40), **changed: object) -> Reuse:
    """Return a reuse by a client that lost the answer and sent the same call again."""
    story = Story(THEN)
    call = story.call()
    nonce = story.issue(call)
    accepted_at = story.after(seconds=20).now
    story.accept(call, nonce)
    story.now = accepted_at + gap
    presentation = story.replay(call | changed, nonce)
    issuance, acceptance, completion = map(stored, story.events[:3])
    return Reuse(
        presentation=stored(presentation),
        number=1,
        total=1,
        issuance=issuance,
        acceptance=acceptance,
        completion=completion,
        since_acceptance=gap,
    )


def differing(*, trusted: bool, known: bool = True) -> Difference:
    presented = "203.0.113.9" if known else None
    return Difference(
        field="client_address", accepted="10.0.0.1", presented=presented, trusted=trusted
    )


differences = st.builds(
    Difference,
    field=st.sampled_from(FIELDS),
    accepted=st.none() | st.text(max_size=5),
    presented=st.none() | st.text(max_size=5),
    trusted=st.booleans(),
)
gaps = st.timedeltas(timedelta(days=-2), timedelta(days=400))


few = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
"""Events are large, and drawing them is what takes the time."""


@st.composite
def reuses(draw: st.DrawFn) -> Reuse:
    """Any reuse at all, the impossible ones too."""
    events = st.builds(stored, recorded_events())
    maybe = st.none() | events
    total = draw(st.integers(1, 100_000))
    return Reuse(
        presentation=draw(events),
        number=draw(st.integers(1, total)),
        total=total,
        issuance=draw(maybe),
        acceptance=draw(maybe),
        completion=draw(maybe),
        since_acceptance=draw(st.none() | gaps),
        differences=tuple(draw(st.lists(differences, max_size=4))),
    )


@few
@given(reuses(), st.integers(0, 50))
def test_every_reuse_gets_exactly_one_label_with_reasons(reuse: Reuse, nonces: int) -> None:
    """The function is total, and a label other than the mildest says why."""
    label = label_of(reuse, DEFAULT_THRESHOLDS, nonces)
    assert label.kind in LabelKind
    mildest = label.kind is LabelKind.CONSISTENT_WITH_RETRY
    assert mildest is (not label.reasons)
    assert mildest is (not label.unmet)


@few
@given(reuses(), st.integers(0, 50))
def test_a_label_never_repeats_what_a_caller_sent(reuse: Reuse, nonces: int) -> None:
    """Reasons, notes and conditions are our own words alone."""
    changed = reuse.presentation.event.model_copy(update={"principal": "mallory-was-here"})
    label = label_of(replace(reuse, presentation=stored(changed)), DEFAULT_THRESHOLDS, nonces)
    assert "mallory" not in " ".join((*label.reasons, *label.notes, *label.unmet))


@few
@given(reuses(), st.integers(0, 50))
def test_a_trusted_difference_always_needs_review(reuse: Reuse, nonces: int) -> None:
    """A known reason for review holds whatever else is known or missing."""
    reuse = replace(reuse, differences=(*reuse.differences, differing(trusted=True)))
    assert label_of(reuse, DEFAULT_THRESHOLDS, nonces).kind is LabelKind.NEEDS_REVIEW


@few
@given(reuses(), st.integers(0, 50), st.lists(differences, max_size=3))
def test_what_is_not_trusted_neither_makes_nor_clears_a_label(
    reuse: Reuse, nonces: int, more: list[Difference]
) -> None:
    """Self-declared fields and addresses of unknown source change nothing by themselves."""
    untrusted = tuple(replace(one, trusted=False) for one in more)
    with_more = replace(reuse, differences=(*reuse.differences, *untrusted))
    before = label_of(reuse, DEFAULT_THRESHOLDS, nonces)
    assert label_of(with_more, DEFAULT_THRESHOLDS, nonces) == before


@few
@given(reuses(), st.integers(0, 50), st.sampled_from(["issuance", "acceptance", "completion"]))
def test_missing_data_never_makes_a_retry(reuse: Reuse, nonces: int, lost: str) -> None:
    """What is lost can take a reason away, never turn a label into the mildest one."""
    whole = label_of(reuse, DEFAULT_THRESHOLDS, nonces)
    missing = label_of(replace(reuse, **{lost: None}), DEFAULT_THRESHOLDS, nonces)
    if whole.kind is not LabelKind.CONSISTENT_WITH_RETRY:
        assert missing.kind is not LabelKind.CONSISTENT_WITH_RETRY


@given(st.timedeltas(timedelta(0), timedelta(seconds=120)))
def test_the_same_call_within_the_window_is_consistent_with_a_retry(gap: timedelta) -> None:
    """Same principal, credential and session, nothing trusted differs, in time, and replayed."""
    label = label_of(a_retry(gap), DEFAULT_THRESHOLDS, 1)
    assert (label.kind, label.reasons) == (LabelKind.CONSISTENT_WITH_RETRY, ())


NEEDING_REVIEW = {
    "later than 120 s": (a_retry(timedelta(seconds=120, microseconds=1)), 1),
    "another principal": (a_retry(principal="eve@corp.example"), 1),
    "another credential": (a_retry(credential_id="ff" * 16), 1),
    "another session": (a_retry(session_id="another"), 1),
    "another client address": (replace(a_retry(), differences=(differing(trusted=True),)), 1),
    "more than 3 reuses": (replace(a_retry(), total=4), 1),
    "several nonces": (a_retry(), 2),
}


@pytest.mark.parametrize("reason", NEEDING_REVIEW)
def test_each_known_reason_needs_review_alone(reason: str) -> None:
    """Each reason of the design suffices, and is named."""
    reuse, nonces = NEEDING_REVIEW[reason]
    label = label_of(reuse, DEFAULT_THRESHOLDS, nonces)
    assert label.kind is LabelKind.NEEDS_REVIEW
    assert any(reason in one for one in label.reasons), label.reasons


def refused(reason: Reason) -> Reuse:
    reuse = a_retry()
    event = reuse.presentation.event.model_copy(
        update={"event_type": EventType.REFUSED, "reason": reason}
    )
    return replace(reuse, presentation=stored(event))


@pytest.mark.parametrize(
    "reason",
    [
        Reason.WRONG_TENANT,
        Reason.WRONG_TOOL,
        Reason.WRONG_TARGET,
        Reason.PLAN_CHANGED,
        Reason.EXPIRED,
    ],
)
def test_a_misdirected_or_expired_reuse_needs_review(reason: Reason) -> None:
    """The hostile cases hide among refusals that come before the ledger is asked."""
    assert label_of(refused(reason), DEFAULT_THRESHOLDS, 1).kind is LabelKind.NEEDS_REVIEW


def test_accepted_again_needs_review() -> None:
    """On an unledgered tool a second confirm runs a second time."""
    reuse = a_retry()
    event = reuse.presentation.event.model_copy(
        update={"event_type": EventType.ACCEPTED, "reason": None}
    )
    label = label_of(replace(reuse, presentation=stored(event)), DEFAULT_THRESHOLDS, 1)
    assert label.kind is LabelKind.NEEDS_REVIEW


@pytest.mark.parametrize("unknown", ["principal", "credential_id", "session_id"])
def test_an_unknown_identity_is_not_enough_known(unknown: str) -> None:
    """Without it a retry cannot be told from somebody else."""
    label = label_of(a_retry(**{unknown: None}), DEFAULT_THRESHOLDS, 1)
    assert label.kind is LabelKind.NOT_ENOUGH_KNOWN


def test_an_acceptance_that_is_not_stored_is_not_enough_known() -> None:
    """There is nothing to compare with, and the label says so."""
    reuse = replace(a_retry(), acceptance=None, completion=None, since_acceptance=None)
    label = label_of(reuse, DEFAULT_THRESHOLDS, 1)
    assert label.kind is LabelKind.NOT_ENOUGH_KNOWN
    assert "not stored" in label.reasons[0]


def test_a_refusal_for_the_ledgers_sake_is_not_enough_known() -> None:
    """It is neither a replay nor a reason to look."""
    label = label_of(refused(Reason.LEDGER_UNAVAILABLE), DEFAULT_THRESHOLDS, 1)
    assert label.kind is LabelKind.NOT_ENOUGH_KNOWN


def test_a_difference_with_an_unknown_side_is_no_difference() -> None:
    """What is not known on both calls cannot differ; it also never clears."""
    reuse = replace(a_retry(), differences=(differing(trusted=True, known=False),))
    assert label_of(reuse, DEFAULT_THRESHOLDS, 1).kind is LabelKind.CONSISTENT_WITH_RETRY


def test_a_reuse_before_the_work_ended_is_noted_as_concurrent() -> None:
    """Two presentations in hand at once are said to be so."""
    assert "concurrent" in label_of(a_retry(timedelta()), DEFAULT_THRESHOLDS, 1).notes[0]


def test_a_retry_after_the_work_ended_is_noted_as_a_lost_answer() -> None:
    """The caller may not have seen that the work was done."""
    label = label_of(a_retry(timedelta(seconds=100)), DEFAULT_THRESHOLDS, 1)
    assert "lost answer" in label.notes[0]


def test_reused_nonces_of_one_caller_count_within_the_window_alone() -> None:
    """Another caller's, and the same caller's of yesterday, do not count."""
    story = Story(THEN)
    mine, other = story.call(), story.call("bo@corp.example")

    def reuse(call: dict, minutes: float) -> Reuse:
        story.now = THEN + timedelta(minutes=minutes)
        event = story.replay(call, story.nonce())
        return replace(a_retry(), presentation=stored(event))

    here = reuse(mine, 0)
    near, late, foreign = reuse(mine, 4.9), reuse(mine, 5.1), reuse(other, 1)
    among = [here, near, late, foreign]
    assert recent_nonces(here, among, DEFAULT_THRESHOLDS) == 2
    wider = LabelThresholds(caller_window=timedelta(minutes=6))
    assert recent_nonces(here, among, wider) == 3


def test_the_worst_label_is_the_most_urgent() -> None:
    """A trail with one reuse to review needs review."""
    mild = label_of(a_retry(), DEFAULT_THRESHOLDS, 1)
    urgent = label_of(replace(a_retry(), total=9), DEFAULT_THRESHOLDS, 1)
    assert worst([mild, urgent]) is urgent
    assert worst([]) is None


def test_the_story_itself_holds_together() -> None:
    """The retry of these tests is one that gates could have recorded."""
    reuse = a_retry()
    assert reuse.presentation.event.nonce_trust is NonceTrust.VERIFIED
    assert reuse.completion is not None
    assert reuse.completion.event.outcome is Outcome.SUCCEEDED


@few
@given(reuses(), st.integers(1, 50))
def test_a_label_shown_before_the_caller_was_looked_at_holds(reuse: Reuse, nonces: int) -> None:
    """What a page shows first is never taken back: what could still change is not shown."""
    desk = SimpleNamespace(settings=SimpleNamespace(label_thresholds=lambda: DEFAULT_THRESHOLDS))
    ((_, first),) = by_themselves(desk, [reuse])  # type: ignore[arg-type]
    known = caller_of(reuse.presentation.event) is not None
    final = label_of(reuse, DEFAULT_THRESHOLDS, nonces if known else 1)
    if first is None:
        assert known
        assert label_of(reuse, DEFAULT_THRESHOLDS, 2).kind is LabelKind.NEEDS_REVIEW
    else:
        assert first.kind is final.kind
        assert set(first.reasons) <= set(final.reasons)
