"""Whether what is stored is all there is, for the producers that were heard from.

Never "complete" wrongly: what is not known to be there is in flight, silent, or missing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from approvaltrail.store.answers import (
    Completeness,
    CompletenessState,
    Gap,
    ProducerCondition,
    ProducerStatus,
)
from approvaltrail.store.queries.producer_facts import gather
from approvaltrail.store.queries.verdict import Bounds, sets_of, status_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from approvaltrail.store.answers import TenantScope
    from approvaltrail.store.connection import Store
    from approvaltrail.store.queries.producer_facts import Facts

__all__ = ["Bounds", "completeness"]

_RECENT: Final = timedelta(hours=2)
_NAMED: Final = 3
_BEFORE: Final = """
SELECT producer_id, max(sent_at) FROM heartbeats
WHERE producer_id IN {ids:Array(UUID)}
  AND last_sequence < {firsts:Array(UInt64)}[indexOf({ids:Array(UUID)}, producer_id)]
  AND sent_at >= {since:DateTime64(6, 'UTC')}
GROUP BY producer_id
"""
_HOUR_BEFORE: Final = """
SELECT max(bucket) FROM heartbeat_1h
WHERE producer_id = {id:UUID} AND first_sequence < {first:UInt64}
"""


def completeness(
    store: Store, scope: TenantScope, now: datetime, expected: int | None, bounds: Bounds
) -> Completeness:
    """Answer for now; `now` is given so that an answer can be repeated."""
    if now.tzinfo is None:
        raise ValueError("completeness is asked at an aware time, such as datetime.now(UTC)")
    facts, dead = gather(store, now, bounds.in_flight)
    statuses = _statuses(store, facts, now, bounds)
    heard = sum(1 for one in statuses if _counts_as_heard(one))
    state, reasons = _state(statuses, heard, expected, dead)
    until = _complete_until(statuses)
    if scope.tenant is not None:
        return Completeness(
            state=state,
            complete_until=until,
            reasons=(),
            producers_heard=0,
            producers_expected=None,
            dead_letters=0,
            asked_at=now,
        )
    return Completeness(
        state=state,
        complete_until=until,
        reasons=tuple(reasons),
        producers_heard=heard,
        producers_expected=expected,
        dead_letters=dead,
        asked_at=now,
        producers=tuple(statuses),
    )


def _statuses(
    store: Store, facts: Mapping[str, Facts], now: datetime, bounds: Bounds
) -> list[ProducerStatus]:
    sets = {producer_id: sets_of(one) for producer_id, one in facts.items()}
    absent = {
        producer_id: one.first_absent
        for producer_id, one in sets.items()
        if one.first_absent is not None and facts[producer_id].heartbeat is not None
    }
    reached = _reached(store, absent, now)
    return [
        status_of(one, sets[producer_id], reached.get(producer_id), now, bounds)
        for producer_id, one in sorted(facts.items())
    ]


def _reached(store: Store, absent: Mapping[str, int], now: datetime) -> dict[str, datetime]:
    """Find each producer's last heartbeat before its first absent number."""
    if not absent:
        return {}
    found = _before(store, absent, now - _RECENT)
    for producer_id, first in absent.items():
        if producer_id in found:
            continue
        hour = store.query(_HOUR_BEFORE, {"id": producer_id, "first": first}).scalar()
        if hour.year > datetime(1970, 1, 1, tzinfo=UTC).year:
            found |= _before(store, {producer_id: first}, hour)
    return found


def _before(store: Store, absent: Mapping[str, int], since: datetime) -> dict[str, datetime]:
    parameters = {"ids": list(absent), "firsts": list(absent.values()), "since": since}
    return {str(name): at for name, at in store.query(_BEFORE, parameters).rows}


def _counts_as_heard(status: ProducerStatus) -> bool:
    return status.last_heartbeat_at is not None and (
        status.condition is not ProducerCondition.RETIRED
    )


def _complete_until(statuses: Sequence[ProducerStatus]) -> datetime | None:
    """Take the least; a retired producer that lacks nothing will not say anything new."""
    counting = [
        one
        for one in statuses
        if one.condition is not ProducerCondition.RETIRED or one.missing or one.lost
    ]
    instants = [one.complete_until for one in counting]
    known = [instant for instant in instants if instant is not None]
    return min(known) if known and len(known) == len(instants) else None


def _state(
    statuses: Sequence[ProducerStatus], heard: int, expected: int | None, dead: int
) -> tuple[CompletenessState, list[str]]:
    wrong = [text for one in statuses for text in _wrong(one)]
    waiting = [text for one in statuses for text in _waiting(one)]
    if expected is not None and heard < expected:
        waiting.insert(0, f"{heard} of {expected} expected producers were heard from")
    notes = [f"{dead} dead {'letter waits' if dead == 1 else 'letters wait'}"] if dead else []
    reasons = [*wrong, *waiting, *notes]
    if wrong:
        return CompletenessState.INCOMPLETE, reasons
    if not statuses and not dead:
        return CompletenessState.NOTHING_RECORDED, reasons
    return (CompletenessState.NOT_YET if waiting else CompletenessState.COMPLETE), reasons


def _wrong(status: ProducerStatus) -> list[str]:
    name = f"producer {status.producer_id}"
    found = []
    if status.missing:
        found.append(f"{name} lacks {_listed(status.gaps)} ({_events(status.missing)})")
    if status.lost:
        found.append(f"{name} declared {_listed(status.lost)} lost: not provable")
    if status.cloned_numbers:
        found.append(
            f"{name} has {status.cloned_numbers} numbers that stand for two events: "
            "its journal was copied"
        )
    return found


def _waiting(status: ProducerStatus) -> list[str]:
    name = f"producer {status.producer_id}"
    found = []
    if status.in_flight:
        found.append(f"{name} has {_events(status.in_flight)} in flight")
    if status.condition is ProducerCondition.SILENT:
        at = status.last_heartbeat_at
        since = f"is silent since {at.isoformat(timespec='seconds')}" if at else "sent no heartbeat"
        found.append(f"{name} {since}")
    if status.unrecorded_refusals:
        found.append(f"{name} has {status.unrecorded_refusals} refusals still to record")
    return found


def _listed(gaps: Sequence[Gap]) -> str:
    shown = [
        str(gap.first) if gap.first == gap.last else f"{gap.first}–{gap.last}"
        for gap in gaps[:_NAMED]
    ]
    return ", ".join(shown) + (" and more" if len(gaps) > _NAMED else "")


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"
