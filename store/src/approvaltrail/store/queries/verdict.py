"""From what is known of a producer to what may be said of it: sets of numbers and nothing else.

Emitted = stored ∪ dead-lettered ∪ declared lost ∪ in flight; what is in none of them is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from approvaltrail.schemas.messages import GateState, Probe, ProducerState
from approvaltrail.store.answers import Gap, ProducerCondition, ProducerStatus
from approvaltrail.store.queries.intervals import common, ranges_of, size, split_at, without

if TYPE_CHECKING:
    from datetime import datetime

    from approvaltrail.store.queries.intervals import Ranges
    from approvaltrail.store.queries.producer_facts import Facts

_SHOWN_GAPS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How old something has to be before its absence means something."""

    in_flight: timedelta = timedelta(seconds=60)
    """An event younger than this may lack without anything being wrong."""
    silent_after: timedelta = timedelta(seconds=60)
    """A live producer not heard from for longer than this is silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """A producer's numbers, told apart."""

    emitted: int
    stored: int
    dead: Ranges
    """Dead-lettered and not stored."""
    lost: Ranges
    """Declared lost, and neither stored nor dead-lettered."""
    missing: Ranges
    in_flight: Ranges

    @property
    def first_absent(self) -> int | None:
        """The lowest number that is neither stored nor dead-lettered, None when all are there."""
        absent = [part[0][0] for part in (self.missing, self.in_flight, self.lost) if part]
        return min(absent, default=None)


def sets_of(facts: Facts) -> Sets:
    """Tell a producer's numbers apart."""
    # what only a dead letter's headers claim has not been heard of
    emitted = max(
        facts.stored_highest,
        facts.reported_highest,
        facts.lost[-1][1] if facts.lost else 0,
    )
    unstored = ranges_of([*facts.holes, (facts.stored_highest + 1, emitted)])
    dead = common(facts.dead, unstored)
    undelivered = without(unstored, dead)
    lost = common(facts.lost, undelivered)
    missing, in_flight = split_at(without(undelivered, lost), facts.settled)
    return Sets(
        emitted=emitted,
        stored=facts.stored,
        dead=dead,
        lost=lost,
        missing=missing,
        in_flight=in_flight,
    )


def condition_of(facts: Facts, now: datetime, bounds: Bounds) -> ProducerCondition:
    """Say how a producer is doing."""
    if facts.retired_because is not None:
        return ProducerCondition.RETIRED
    heartbeat = facts.heartbeat
    if heartbeat is None:
        return ProducerCondition.SILENT
    if heartbeat["state"] == ProducerState.CLOSED:
        return ProducerCondition.CLOSED
    silent = now - heartbeat["sent_at"] > bounds.silent_after
    return ProducerCondition.SILENT if silent else ProducerCondition.LIVE


def complete_until(
    facts: Facts, sets: Sets, reached: datetime | None, now: datetime, condition: ProducerCondition
) -> datetime | None:
    """Say until when every event recorded is stored or dead-lettered.

    `reached` is the time of the last heartbeat before the first absent number.
    """
    heartbeat = facts.heartbeat
    if heartbeat is None:
        return None
    if sets.first_absent is not None:
        return min(reached, now) if reached else None
    if condition is ProducerCondition.CLOSED:
        return now
    sent_at: datetime = heartbeat["sent_at"]
    return min(sent_at, now)


def status_of(
    facts: Facts, sets: Sets, reached: datetime | None, now: datetime, bounds: Bounds
) -> ProducerStatus:
    """Put a producer's status together."""
    condition = condition_of(facts, now, bounds)
    beat = facts.heartbeat or {}
    limit = beat.get("journal_limit_bytes", 0)
    return ProducerStatus(
        producer_id=facts.producer_id,
        service=facts.service,
        instance=facts.instance,
        condition=condition,
        condition_reason=facts.retired_because,
        last_heartbeat_at=beat.get("sent_at"),
        emitted=sets.emitted,
        stored=sets.stored,
        dead_lettered=size(sets.dead),
        in_flight=size(sets.in_flight),
        gaps=_gaps(sets.missing),
        missing=size(sets.missing),
        lost=_gaps(sets.lost),
        complete_until=complete_until(facts, sets, reached, now, condition),
        pending=beat.get("pending", 0),
        journal_fill=min(1.0, beat["journal_bytes"] / limit) if limit else 0.0,
        gate_state=GateState(beat.get("gate_state", GateState.OPEN)),
        gate_reason=beat.get("gate_reason"),
        unrecorded_refusals=beat.get("unrecorded_refusals", 0),
        ledger_probe=Probe(beat.get("ledger_probe", Probe.NONE)),
        ledger_probe_at=beat.get("ledger_probe_at"),
        cloned_numbers=facts.doubled,
    )


def _gaps(ranges: Ranges) -> tuple[Gap, ...]:
    return tuple(Gap(first, last) for first, last in ranges[:_SHOWN_GAPS])
