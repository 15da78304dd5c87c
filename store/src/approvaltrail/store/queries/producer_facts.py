"""What the store knows of each producer, before anything is concluded from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from approvaltrail.store.queries.intervals import Ranges, ranges_of

if TYPE_CHECKING:
    from approvaltrail.store.connection import Store

CHUNK: Final = 65_536
_MOST_DEAD: Final = 200_000
"""More dead letters than this are not looked at one by one; their numbers then count as missing."""

# A chunk of 65,536 numbers that is not full is opened: between two members that are not next to
# each other is a hole. (Small sets do not come sorted.)
_COVER: Final = """
SELECT producer_id, groupArray((chunk, stored, highest, holes)) AS chunks,
  sum(doubled) AS doubled, anyLast(service) AS service, anyLast(instance) AS instance,
  maxIf(chunk * 65536 + highest + 1, recorded_at <= {cutoff:DateTime64(6, 'UTC')}) AS settled
FROM (
  SELECT producer_id, chunk, groupBitmapMergeState(sequences) AS members,
    bitmapCardinality(members) AS stored, bitmapMax(members) AS highest,
    groupBitmapMerge(pairs) - stored AS doubled, max(last_recorded_at) AS recorded_at,
    anyLast(seq_cover.service) AS service, anyLast(seq_cover.instance) AS instance,
    if(stored = 65536, [], arrayMap(n -> toInt64(n), arraySort(bitmapToArray(members)))) AS numbers,
    arrayConcat([toInt64(0)], arrayMap(n -> n + 1, numbers)) AS firsts,
    arrayConcat(arrayMap(n -> n - 1, numbers), [toInt64(65535)]) AS lasts,
    if(stored = 65536, [], arrayFilter(hole -> hole.1 <= hole.2, arrayZip(firsts, lasts))) AS holes
  FROM seq_cover
  GROUP BY producer_id, chunk
)
GROUP BY producer_id
"""
_HOURS: Final = """
SELECT producer_id, max(last_sequence), maxIf(last_sequence, bucket < {hour:DateTime64(6, 'UTC')}),
  groupUniqArrayArray(lost_ranges)
FROM heartbeat_1h
GROUP BY producer_id
"""
_THIS_HOUR: Final = """
SELECT producer_id, max(last_sequence) FROM heartbeats
WHERE sent_at >= {hour:DateTime64(6, 'UTC')}
  AND (sent_at <= {cutoff:DateTime64(6, 'UTC')} OR stored_at <= {cutoff:DateTime64(6, 'UTC')})
GROUP BY producer_id
"""
_DEAD: Final = """
SELECT toUUIDOrNull(producer_id) AS owner, groupUniqArray(assumeNotNull(sequence))
FROM (
  SELECT producer_id, sequence FROM dead_letters FINAL
  WHERE isNotNull(sequence) AND ifNull(redriven_at > {cutoff:DateTime64(6, 'UTC')}, true)
  ORDER BY dead_lettered_at DESC LIMIT {most:UInt32}
)
GROUP BY owner HAVING isNotNull(owner)
"""


@dataclass(slots=True, kw_only=True)
class Facts:
    """One producer."""

    producer_id: str
    heartbeat: dict[str, Any] | None = None
    """The newest one."""
    service: str = ""
    instance: str = ""
    stored_highest: int = 0
    stored: int = 0
    holes: Ranges = field(default_factory=list)
    """What is not stored of the numbers from 1 to `stored_highest`."""
    doubled: int = 0
    reported_highest: int = 0
    settled: int = 0
    """Numbers up to this one are older than the in-flight bound."""
    dead: Ranges = field(default_factory=list)
    lost: Ranges = field(default_factory=list)
    retired_because: str | None = None


def gather(store: Store, now: datetime, in_flight: timedelta) -> dict[str, Facts]:
    """Read what is known of every producer."""
    known = _Known()
    _cover(store, known, now - in_flight)
    _heartbeats(store, known, now - in_flight)
    _dead_letters(store, known, now - in_flight)
    for producer_id, reason in store.query(
        "SELECT producer_id, reason FROM retired_producers FINAL"
    ).rows:
        known.of(producer_id).retired_because = reason
    return known.facts


@dataclass(slots=True)
class _Known:
    facts: dict[str, Facts] = field(default_factory=dict)

    def of(self, producer_id: object) -> Facts:
        name = str(producer_id)
        if name not in self.facts:
            self.facts[name] = Facts(producer_id=name)
        return self.facts[name]


def _cover(store: Store, known: _Known, cutoff: datetime) -> None:
    for producer_id, chunks, doubled, service, instance, settled in store.query(
        _COVER, {"cutoff": cutoff}
    ).rows:
        facts = known.of(producer_id)
        facts.service, facts.instance, facts.doubled = service, instance, doubled
        facts.settled = settled
        holes: Ranges = []
        following = 0
        for chunk, stored, highest, inside in sorted(chunks):
            base = chunk * CHUNK + 1
            if chunk > following:
                holes.append((following * CHUNK + 1, base - 1))
            holes += [(base + first, base + last) for first, last in inside]
            following = chunk + 1
            facts.stored += stored
            facts.stored_highest = base + highest
        facts.holes = [
            (first, min(last, facts.stored_highest))
            for first, last in ranges_of(holes)
            if first <= facts.stored_highest
        ]


def _heartbeats(store: Store, known: _Known, cutoff: datetime) -> None:
    latest = store.query(
        "SELECT * FROM heartbeat_latest ORDER BY sent_at DESC LIMIT 1 BY producer_id"
    )
    for row in latest.dicts():
        facts = known.of(row["producer_id"])
        facts.heartbeat = row
        facts.service, facts.instance = row["service"], row["instance"]
    hour = cutoff.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    hours = store.query(_HOURS, {"hour": hour})
    for producer_id, highest, before, lost in hours.rows:
        facts = known.of(producer_id)
        facts.reported_highest = highest
        facts.settled = max(facts.settled, before)
        facts.lost = ranges_of((first, last) for first, last, _ in lost)
    recent = store.query(_THIS_HOUR, {"hour": hour, "cutoff": cutoff})
    for producer_id, highest in recent.rows:
        facts = known.of(producer_id)
        facts.settled = max(facts.settled, highest)


def _dead_letters(store: Store, known: _Known, cutoff: datetime) -> None:
    """Take the numbers of dead letters; one re-driven a while ago has to be stored by now."""
    rows = store.query(_DEAD, {"cutoff": cutoff, "most": _MOST_DEAD}).rows
    for owner, numbers in rows:
        # An owner is what headers claim: one never heard of otherwise does not become a producer.
        if str(owner) in known.facts:
            known.of(owner).dead = ranges_of((number, number) for number in numbers)
