"""The verdict of `smoke` can fall: each condition fails on the fault that it is there for."""

from __future__ import annotations

import dataclasses
from collections import Counter

from tests.support.story import UTC_NOW, Story

from approvaltrail.gate.testing import EventLog
from approvaltrail.local.smoke import checks
from approvaltrail.local.smoke.canaries import Hunt
from approvaltrail.local.smoke.evidence import Stored
from approvaltrail.local.smoke.server import serving
from approvaltrail.local.smoke.tally import Tally
from approvaltrail.local.smoke.traffic import run_traffic
from approvaltrail.schemas.events import EventType, Reason
from approvaltrail.store.answers import Completeness, CompletenessState, Reuse

A, B, POISON = ("p1", 1), ("p1", 2), ("p2", 1)
SOUND = Stored(
    numbers=frozenset({A, B}),
    dead_numbers=frozenset({POISON}),
    dead_letters=1,
    by_identity=Counter({EventType.ISSUED: 2}),
    by_bitmap=Counter({EventType.ISSUED: 2}),
    reuses=(),
    reuses_total=0,
    completeness=Completeness(
        state=CompletenessState.COMPLETE,
        complete_until=None,
        reasons=(),
        producers_heard=1,
        producers_expected=None,
        dead_letters=1,
        asked_at=UTC_NOW,
    ),
)
RECORDED = frozenset({A, B, POISON})


def failing(conditions: list[checks.Condition]) -> set[str]:
    return {one.name for one in conditions if not one.holds}


def of_sets(stored: Stored) -> set[str]:
    return failing(checks.sets(RECORDED, stored, frozenset({POISON})))


def test_a_sound_run_passes() -> None:
    """Recorded is stored and dead-lettered, counts agree: nothing to complain of."""
    tally = Tally(events=Counter({EventType.ISSUED: 2}))
    assert of_sets(SOUND) == set()
    assert failing(checks.counts(tally, SOUND)) == set()
    assert failing(checks.reuses(tally, SOUND)) == set()
    assert checks.gaps(SOUND)[1].holds


def test_a_lost_event_fails() -> None:
    """An event that is neither stored nor dead-lettered is named."""
    lost = dataclasses.replace(SOUND, numbers=frozenset({A}))
    assert of_sets(lost) == {"every recorded event is stored or dead-lettered"}


def test_an_event_from_nowhere_fails() -> None:
    """A stored event that no journal holds is named."""
    foreign = dataclasses.replace(SOUND, numbers=SOUND.numbers | {("p9", 1)})
    assert of_sets(foreign) == {"nothing is stored or dead-lettered that was not recorded"}


def test_a_good_event_among_the_dead_letters_fails() -> None:
    """Only the poison message may be dead-lettered."""
    buried = dataclasses.replace(
        SOUND, numbers=frozenset({A}), dead_numbers=frozenset({B, POISON}), dead_letters=2
    )
    assert of_sets(buried) == {"exactly the poison message is dead-lettered, and once"}


def test_a_poison_message_that_went_through_fails() -> None:
    """A damaged event that was stored, or vanished, is a failure."""
    assert of_sets(dataclasses.replace(SOUND, dead_numbers=frozenset(), dead_letters=0))


def test_wrong_counts_fail_each_by_itself() -> None:
    """A wrong bitmap and a wrong identity count are told apart."""
    tally = Tally(events=Counter({EventType.ISSUED: 2}))
    wrong = Counter({EventType.ISSUED: 3})
    by_bitmap = failing(checks.counts(tally, dataclasses.replace(SOUND, by_bitmap=wrong)))
    by_identity = failing(checks.counts(tally, dataclasses.replace(SOUND, by_identity=wrong)))
    assert by_bitmap == {"counts by bitmap equal the gate's answers"}
    assert by_identity == {"counts by uniqExact(event_id) equal the gate's answers"}


def test_an_unlinked_or_missing_reuse_fails() -> None:
    """A reuse without its acceptance, and a reuse that only the gate knows, are failures."""
    story = Story(UTC_NOW)
    call = story.call()
    nonce = story.issue(call)
    replay = story.replay(call, nonce)
    reuse = Reuse(
        presentation=_stored(replay),
        number=1,
        total=1,
        issuance=_stored(story.events[0]),
        acceptance=None,
        completion=None,
        since_acceptance=None,
    )
    tally = Tally(reuses=Counter({nonce: 1}))
    unlinked = dataclasses.replace(SOUND, reuses=(reuse,), reuses_total=1)
    assert failing(checks.reuses(tally, unlinked)) == {
        "every reuse is linked to its issuance and its acceptance"
    }
    assert failing(checks.reuses(tally, SOUND)) == {"reuses by nonce equal the gate's answers"}


def test_a_blind_search_and_a_leak_fail() -> None:
    """A canary that was not found, and a token that was, are failures."""
    token = "at1." + "p" * 60 + "." + "s" * 43
    hunt = Hunt(tokens=[token], canaries={"topics": "canary-of-the-topics"})
    assert failing(checks.secrecy(hunt)) == {"the canary of every hop is found there"}
    hunt.through("topics", [b"canary-of-the-topics", token.encode()])
    assert failing(checks.secrecy(hunt)) == {"no token is found anywhere"}


def _stored(event):
    from approvaltrail.store.answers import StoredEvent

    return StoredEvent(
        event=event, partition=0, offset=0, stored_at=UTC_NOW, schema_fingerprint="0" * 16
    )


async def test_the_tally_of_answers_is_what_the_recorder_was_given(tmp_path) -> None:
    """Counting what clients were answered comes to the same as counting what was recorded."""
    events = EventLog()
    async with serving(events, tmp_path / "tokens.db", seed=1) as server:
        await run_traffic(server.actor, events=300, count=lambda: server.tally.total)
    tally = server.tally
    assert tally.unrecorded == 0
    assert tally.events == Counter(event.event_type for event in events)
    assert set(tally.events) == set(EventType)
    assert tally.reuses.total() > 0
    assert set(Reason) & {event.reason for event in events} >= {
        Reason.ALREADY_USED,
        Reason.EXPIRED,
        Reason.WRONG_TENANT,
        Reason.WRONG_TOOL,
        Reason.WRONG_TARGET,
        Reason.PLAN_CHANGED,
        Reason.BAD_SIGNATURE,
        Reason.MISSING_TOKEN,
    }
