"""Completeness is computed over sets of numbers, and never says complete wrongly."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.blocks import insert

from approvaltrail.schemas.events import EventType, NonceTrust, RecordedEvent
from approvaltrail.schemas.identity import new_event_id, new_producer_id
from approvaltrail.schemas.messages import DeadLetterCause, Heartbeat
from approvaltrail.store.answers import (
    CompletenessState,
    Gap,
    ProducerCondition,
    TenantScope,
)
from approvaltrail.store.queries import Queries
from approvaltrail.store.queries.intervals import common, ranges_of, size, split_at, without
from approvaltrail.store.queries.producer_facts import Facts
from approvaltrail.store.queries.verdict import sets_of
from approvaltrail.store.writing import (
    DeadLetterRow,
    insert_dead_letters,
    insert_heartbeats,
    retire_producer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from approvaltrail.store.answers import Completeness, ProducerStatus
    from approvaltrail.store.connection import Store

NOW = datetime(2026, 3, 8, 12, 0, tzinfo=UTC)
EVERYTHING = TenantScope.everything()
numbers = st.frozensets(st.integers(1, 60))


def as_ranges(members: Iterable[int]) -> list[tuple[int, int]]:
    return ranges_of((one, one) for one in members)


def as_set(ranges: Iterable[tuple[int, int]]) -> set[int]:
    return {one for first, last in ranges for one in range(first, last + 1)}


@given(numbers, numbers, st.integers(0, 61))
def test_ranges_behave_as_sets(one: frozenset[int], other: frozenset[int], bound: int) -> None:
    """Difference, intersection, split and size of ranges are those of sets."""
    left, right = as_ranges(one), as_ranges(other)
    assert as_set(without(left, right)) == one - other
    assert as_set(common(left, right)) == one & other
    assert size(left) == len(one)
    low, high = split_at(left, bound)
    assert as_set(low) == {n for n in one if n <= bound}
    assert as_set(high) == {n for n in one if n > bound}
    for ranges in (without(left, right), left, low, high):
        assert all(a[1] + 1 < b[0] for a, b in itertools.pairwise(ranges))


@given(numbers, numbers, numbers, st.integers(0, 70), st.integers(0, 70))
def test_every_emitted_number_is_in_exactly_one_set(
    stored: frozenset[int], dead: frozenset[int], lost: frozenset[int], reported: int, settled: int
) -> None:
    """Emitted is the disjoint union of stored, dead-lettered, lost, in flight and missing."""
    highest = max(stored, default=0)
    sets = sets_of(
        Facts(
            producer_id="p",
            stored=len(stored),
            stored_highest=highest,
            holes=as_ranges(set(range(1, highest + 1)) - stored),
            reported_highest=reported,
            settled=settled,
            dead=as_ranges(dead),
            lost=as_ranges(lost),
        )
    )
    emitted = set(range(1, max(highest, reported, *lost, 0) + 1))
    dead = dead & emitted
    absent = emitted - stored - dead - lost
    assert sets.emitted == max(emitted, default=0)
    assert as_set(sets.dead) == dead - stored
    assert as_set(sets.lost) == lost - dead - stored
    assert as_set(sets.missing) == {one for one in absent if one <= settled}
    assert as_set(sets.in_flight) == {one for one in absent if one > settled}
    assert sets.first_absent == min(absent | (lost - dead - stored), default=None)


@dataclass
class Journal:
    """A producer as a test tells of it; `NOW` is when the question is asked."""

    store: Store
    producer_id: str = field(default_factory=new_producer_id)
    partition: int = field(default_factory=itertools.count().__next__)

    def stores(self, sequences: Iterable[int], *, twice: bool = False) -> None:
        """Have events stored."""
        events = [self.event(sequence) for sequence in sequences]
        for _ in range(1 + twice):
            insert(self.store, events)

    def event(self, sequence: int) -> RecordedEvent:
        """Make an event with a number."""
        at = NOW - timedelta(hours=1) + timedelta(milliseconds=sequence)
        return RecordedEvent(
            event_id=new_event_id(),
            event_type=EventType.ISSUED,
            occurred_at=at,
            recorded_at=at,
            nonce=f"n{sequence}",
            nonce_trust=NonceTrust.VERIFIED,
            tool="tidb_delete_cluster",
            sequence=sequence,
            producer_id=self.producer_id,
            service="tidb-mcp",
            instance="pod-1",
        )

    def beats(self, last_sequence: int, seconds_ago: float = 5, **values: object) -> datetime:
        """Have a heartbeat stored, and return when it was sent."""
        sent_at = NOW - timedelta(seconds=seconds_ago)
        beat = Heartbeat(
            producer_id=self.producer_id,
            service="tidb-mcp",
            instance="pod-1",
            sent_at=sent_at,
            started_at=NOW - timedelta(hours=2),
            last_sequence=last_sequence,
            **{"state": "live", **values},
        )
        insert_heartbeats(self.store, [beat, beat])
        return sent_at

    def buries(self, sequences: Iterable[int], redriven_at: datetime | None = None) -> None:
        """Have numbers dead-lettered."""
        letters = [
            DeadLetterRow(
                topic="approval-events",
                partition=self.partition,
                offset=sequence,
                cause=DeadLetterCause.UNDECODABLE,
                detail="not a record",
                producer_id=self.producer_id,
                sequence=sequence,
                dead_lettered_at=NOW - timedelta(hours=1),
                redriven_at=redriven_at,
            )
            for sequence in sequences
        ]
        insert_dead_letters(self.store, letters)
        insert_dead_letters(self.store, letters)


@pytest.fixture
def journal(store: Store) -> Journal:
    """One producer."""
    return Journal(store)


def ask(store: Store, **options: object) -> Completeness:
    return Queries(store).completeness(EVERYTHING, NOW, **options)


def status(answer: Completeness) -> ProducerStatus:
    (only,) = answer.producers
    return only


def test_an_empty_store_says_that_nothing_was_recorded(store: Store) -> None:
    """With nothing heard of, the answer is neither complete nor incomplete."""
    answer = ask(store)
    assert answer.state is CompletenessState.NOTHING_RECORDED
    assert answer.complete_until is None


def test_all_stored_is_complete_up_to_the_last_heartbeat(store: Store, journal: Journal) -> None:
    """A producer all of whose numbers are stored is complete until its last heartbeat."""
    journal.stores(range(1, 41), twice=True)
    journal.beats(20, 300)
    sent_at = journal.beats(40)
    answer = ask(store)
    assert answer.state is CompletenessState.COMPLETE
    assert answer.complete_until == sent_at
    assert (status(answer).emitted, status(answer).stored, status(answer).gaps) == (40, 40, ())


def test_an_old_gap_is_named(store: Store, journal: Journal) -> None:
    """A number older than the in-flight bound that lacks makes the store incomplete, by name."""
    journal.stores([*range(1, 118), *range(121, 131)])
    early = journal.beats(110, 600)
    journal.beats(130, 300)
    journal.beats(130)
    answer = ask(store)
    assert answer.state is CompletenessState.INCOMPLETE
    assert answer.reasons == (f"producer {journal.producer_id} lacks 118–120 (3 events)",)
    assert status(answer).gaps == (Gap(118, 120),)
    assert answer.complete_until == early


def test_a_young_absence_is_in_flight(store: Store, journal: Journal) -> None:
    """Numbers younger than the bound are in flight: not complete, and nothing lacks."""
    journal.stores(range(1, 9))
    settled = journal.beats(8, 90)
    journal.beats(12)
    answer = ask(store)
    assert answer.state is CompletenessState.NOT_YET
    assert (status(answer).in_flight, status(answer).missing) == (4, 0)
    assert answer.complete_until == settled


def test_what_is_in_flight_too_long_is_missing(store: Store, journal: Journal) -> None:
    """The same numbers are missing once the heartbeat that told of them is old enough."""
    journal.stores(range(1, 9))
    journal.beats(12, 61)
    journal.beats(12)
    assert ask(store).state is CompletenessState.INCOMPLETE


def test_nothing_stored_and_much_reported_is_not_complete(store: Store, journal: Journal) -> None:
    """A producer of which only heartbeats are stored lacks everything it emitted."""
    journal.beats(5, 120)
    journal.beats(5)
    answer = ask(store)
    assert answer.state is CompletenessState.INCOMPLETE
    assert status(answer).gaps == (Gap(1, 5),)


def test_dead_letters_close_the_sum(store: Store, journal: Journal) -> None:
    """A dead-lettered number is accounted for, and one that is stored as well counts as stored."""
    journal.stores([1, 2, 4])
    journal.buries([3, 4])
    journal.beats(4, 100)
    journal.beats(4)
    answer = ask(store)
    assert answer.state is CompletenessState.COMPLETE
    assert answer.dead_letters == 2
    assert status(answer).dead_lettered == 1
    assert "2 dead letters wait" in answer.reasons


def test_a_letter_sent_again_must_arrive(store: Store, journal: Journal) -> None:
    """A re-driven dead letter explains its number for a while only; then it is missing."""
    journal.stores([1, 2])
    journal.buries([3], redriven_at=NOW - timedelta(seconds=30))
    journal.beats(3, 100)
    journal.beats(3)
    assert status(ask(store)).missing == 0
    journal.buries([3], redriven_at=NOW - timedelta(seconds=61))
    later = Queries(store).completeness(EVERYTHING, NOW + timedelta(seconds=40))
    assert later.state is CompletenessState.INCOMPLETE


def test_a_declared_loss_is_never_complete(store: Store, journal: Journal) -> None:
    """Numbers declared lost are named as not provable, unless they are stored after all."""
    lost = ({"first_sequence": 3, "last_sequence": 5, "reason": "damaged page"},)
    journal.stores([1, 2, 4, 6])
    journal.beats(6, 100, lost_ranges=lost)
    journal.beats(6)
    answer = ask(store)
    assert answer.state is CompletenessState.INCOMPLETE
    assert status(answer).lost == (Gap(3, 3), Gap(5, 5))
    assert status(answer).missing == 0
    journal.stores([3, 5])
    assert ask(store).state is CompletenessState.COMPLETE


def test_silence_is_not_completeness(store: Store, journal: Journal) -> None:
    """A live producer not heard from is silent: what it recorded since is unknown."""
    journal.stores([1])
    journal.beats(1, 61)
    answer = ask(store)
    assert answer.state is CompletenessState.NOT_YET
    assert status(answer).condition is ProducerCondition.SILENT


def test_events_without_a_heartbeat_are_not_complete(store: Store, journal: Journal) -> None:
    """A producer that never sent a heartbeat may have emitted more than is stored."""
    journal.stores([1, 2])
    answer = ask(store)
    assert answer.state is CompletenessState.NOT_YET
    assert answer.complete_until is None


def test_a_closed_producer_holds_nobody_up(store: Store, journal: Journal) -> None:
    """A producer that closed in order, all stored, is complete however long ago that was."""
    journal.stores([1, 2])
    journal.beats(2, 86_400, state="closed")
    other = Journal(store)
    sent_at = other.beats(0)
    answer = ask(store)
    assert answer.state is CompletenessState.COMPLETE
    assert answer.complete_until == sent_at
    assert {one.condition for one in answer.producers} == {
        ProducerCondition.CLOSED,
        ProducerCondition.LIVE,
    }


def test_retiring_ends_the_silence_and_mends_no_gap(store: Store, journal: Journal) -> None:
    """A retired producer is not waited for; what lacks of it lacks all the same."""
    journal.stores([1, 2])
    journal.beats(2, 7_200)
    Journal(store).beats(0)
    retire_producer(
        store, journal.producer_id, reason="host gone", retired_by="ana", retired_at=NOW
    )
    assert ask(store).state is CompletenessState.COMPLETE
    journal.stores([4])
    assert ask(store).state is not CompletenessState.COMPLETE


def test_too_few_producers_is_not_complete(store: Store, journal: Journal) -> None:
    """With fewer producers heard from than expected, the answer says so."""
    journal.beats(0)
    assert ask(store, expected=1).state is CompletenessState.COMPLETE
    answer = ask(store, expected=2)
    assert answer.state is CompletenessState.NOT_YET
    assert answer.reasons == ("1 of 2 expected producers were heard from",)


def test_a_cloned_journal_is_found(store: Store, journal: Journal) -> None:
    """Numbers that stand for two events are a finding, not one number seen twice."""
    journal.stores(range(1, 21))
    insert(store, [journal.event(sequence) for sequence in range(11, 21)])
    journal.beats(20)
    answer = ask(store)
    assert answer.state is CompletenessState.INCOMPLETE
    assert 1 <= status(answer).cloned_numbers <= 10


def test_refusals_still_to_record_are_not_complete(store: Store, journal: Journal) -> None:
    """Refusals counted while the journal was unavailable keep the answer from complete."""
    journal.beats(0, unrecorded_refusals=3)
    assert ask(store).state is CompletenessState.NOT_YET


def test_a_viewer_of_one_tenant_learns_the_state_alone(store: Store, journal: Journal) -> None:
    """No producer, number, reason or count reaches a viewer of one tenant."""
    journal.stores([1, 3])
    journal.beats(3, 100)
    journal.buries([2])
    answer = Queries(store).completeness(TenantScope.only("acme"), NOW, expected=3)
    assert answer.state is CompletenessState.NOT_YET
    assert (answer.reasons, answer.producers, answer.dead_letters) == ((), (), 0)
    assert (answer.producers_heard, answer.producers_expected) == (0, None)
    assert Queries(store).dead_letters(TenantScope.only("acme")) == ()
    assert len(Queries(store).dead_letters(EVERYTHING)) == 1


def test_gaps_over_chunks_are_one_gap(store: Store, journal: Journal) -> None:
    """A gap that spans the store's chunks of numbers is one range, first and last right."""
    journal.stores([1, 2, 65_535, 65_536, 65_537, 200_000])
    journal.beats(200_001, 120)
    answer = status(ask(store))
    assert answer.gaps == (Gap(3, 65_534), Gap(65_538, 199_999), Gap(200_001, 200_001))
    assert answer.missing == 200_001 - 6


def test_a_clock_ahead_is_not_believed(store: Store, journal: Journal) -> None:
    """Completeness never reaches beyond the time at which it was asked."""
    journal.beats(0, -3_600)
    answer = ask(store)
    assert answer.complete_until == NOW


def test_a_zone_less_now_is_refused(store: Store) -> None:
    """Completeness is asked at an aware time."""
    with pytest.raises(ValueError, match="aware"):
        Queries(store).completeness(EVERYTHING, NOW.replace(tzinfo=None))


@pytest.mark.parametrize("seed", range(6))
def test_the_store_agrees_with_sets(store: Store, seed: int) -> None:
    """For several producers with holes, letters and losses, each status is what sets give."""
    chance = random.Random(seed)
    expected = {}
    for _ in range(3):
        journal = Journal(store)
        base = chance.choice((0, 65_520))
        window = range(base + 1, base + 40)
        stored = {one for one in window if chance.random() < 0.7}
        dead = {one for one in window if chance.random() < 0.15}
        settled = chance.choice((base + 10, base + 35))
        reported = settled + chance.randrange(10)
        if stored:
            journal.stores(stored, twice=True)
        if dead:
            journal.buries(dead)
        journal.beats(settled, 70)
        journal.beats(reported, 10)
        emitted = set(range(1, max([reported, *stored]) + 1))
        dead &= emitted
        absent = emitted - stored - dead
        # what was recorded before a stored event of an hour ago is as old
        settled = max([settled, *stored])
        expected[journal.producer_id] = (
            max(emitted),
            len(stored),
            len(dead - stored),
            sum(1 for one in absent if one > settled),
            as_ranges(one for one in absent if one <= settled)[:20],
        )
    answer = ask(store)
    for one in answer.producers:
        gaps = [(gap.first, gap.last) for gap in one.gaps]
        found = (one.emitted, one.stored, one.dead_lettered, one.in_flight, gaps)
        assert found == expected[one.producer_id]
