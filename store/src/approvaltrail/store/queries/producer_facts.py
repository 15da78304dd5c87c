"""What the store knows of each producer, before anything is concluded from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from approvaltrail.store.queries.intervals import Ranges, ranges_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from approvaltrail.store.connection import Store

CHUNK: Final = 65_536
_MOST_DEAD: Final = 200_000
"""More dead letters than this are not looked at one by one; their numbers then count as missing."""

_COVER: Final = """
SELECT producer_id, groupArray((chunk, stored, highest)) AS chunks, sum(doubled) AS doubled,
  anyLast(service) AS service, anyLast(instance) AS instance,
  maxIf(chunk * 65536 + highest + 1, recorded_at <= {cutoff:DateTime64(6, 'UTC')}) AS settled
FROM (
  SELECT producer_id, chunk, groupBitmapMergeState(sequences) AS members,
    bitmapCardinality(members) AS stored, bitmapMax(members) AS highest,
    groupBitmapMerge(pairs) - stored AS doubled, max(last_recorded_at) AS recorded_at,
    anyLast(seq_cover.service) AS service, anyLast(seq_cover.instance) AS instance
  FROM seq_cover
  GROUP BY producer_id, chunk
)
GROUP BY producer_id
"""
# Between two members that are not next to each other is a hole. (Small sets do not come sorted.)
_HOLES: Final = """
SELECT producer_id, chunk,
  arrayFilter(hole -> hole.1 <= hole.2, arrayZip(
    arrayConcat([toInt64(0)], arrayMap(n -> n + 1, members)),
    arrayConcat(arrayMap(n -> n - 1, members), [toInt64(65535)]))) AS holes
FROM (
  SELECT producer_id, chunk,
    arrayMap(n -> toInt64(n), arraySort(bitmapToArray(groupBitmapMergeState(sequences)))) AS members
  FROM seq_cover
  WHERE (producer_id, chunk) IN {chunks:Array(Tuple(UUID, UInt64))}
  GROUP BY producer_id, chunk
)
"""
_REPORTED: Final = """
SELECT producer_id, max(highest), max(settled), groupUniqArrayArray(lost)
FROM (
  SELECT producer_id, last_sequence AS highest,
    if(bucket < {hour:DateTime64(6, 'UTC')}, last_sequence, 0) AS settled, lost_ranges AS lost
  FROM heartbeat_1h
  UNION ALL
  SELECT producer_id, 0 AS highest, last_sequence AS settled, [] AS lost
  FROM heartbeats
  WHERE sent_at >= {hour:DateTime64(6, 'UTC')}
    AND (sent_at <= {cutoff:DateTime64(6, 'UTC')} OR stored_at <= {cutoff:DateTime64(6, 'UTC')})
)
GROUP BY producer_id
"""
_LATEST: Final = "SELECT * FROM heartbeat_latest ORDER BY sent_at DESC LIMIT 1 BY producer_id"
_RETIRED: Final = "SELECT producer_id, reason FROM retired_producers FINAL"
_OPEN_DEAD_LETTERS: Final = "SELECT count() FROM dead_letters FINAL WHERE isNull(redriven_at)"
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


def gather(store: Store, now: datetime, in_flight: timedelta) -> tuple[dict[str, Facts], int]:
    """Read what is known of every producer, and how many dead letters wait."""
    cutoff = now - in_flight
    hour = cutoff.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    covered, latest, reported, aside = store.together(
        lambda: _covered(store, cutoff),
        lambda: store.query(_LATEST).dicts(),
        lambda: store.query(_REPORTED, {"hour": hour, "cutoff": cutoff}).rows,
        lambda: (
            store.query(_DEAD, {"cutoff": cutoff, "most": _MOST_DEAD}).rows,
            store.query(_OPEN_DEAD_LETTERS).scalar(),
            store.query(_RETIRED).rows,
        ),
    )
    dead, waiting, retired = aside
    known = _Known()
    _add_cover(known, *covered)
    _add_heartbeats(known, latest, reported)
    _add_dead_letters(known, dead)
    for producer_id, reason in retired:
        known.of(producer_id).retired_because = reason
    return known.facts, int(waiting)


@dataclass(slots=True)
class _Known:
    facts: dict[str, Facts] = field(default_factory=dict)

    def of(self, producer_id: object) -> Facts:
        name = str(producer_id)
        if name not in self.facts:
            self.facts[name] = Facts(producer_id=name)
        return self.facts[name]


def _covered(store: Store, cutoff: datetime) -> tuple[Sequence[Any], dict[Any, Any]]:
    """Read which numbers are stored, and the holes of the chunks that have some before their end.

    Seldom has any, and to look into a full one takes longer than all the rest.
    """
    rows = store.query(_COVER, {"cutoff": cutoff}).rows
    holed = [
        (producer_id, chunk)
        for producer_id, chunks, *_ in rows
        for chunk, stored, highest in chunks
        if stored != highest + 1
    ]
    if not holed:
        return rows, {}
    found = store.query(_HOLES, {"chunks": holed}).rows
    return rows, {(producer_id, chunk): holes for producer_id, chunk, holes in found}


def _add_cover(known: _Known, rows: Sequence[Any], opened: Mapping[Any, Any]) -> None:
    for producer_id, chunks, doubled, service, instance, settled in rows:
        facts = known.of(producer_id)
        facts.service, facts.instance, facts.doubled = service, instance, doubled
        facts.settled = settled
        holes: Ranges = []
        following = 0
        for chunk, stored, highest in sorted(chunks):
            base = chunk * CHUNK + 1
            if chunk > following:
                holes.append((following * CHUNK + 1, base - 1))
            inside = opened.get((producer_id, chunk), [(highest + 1, CHUNK - 1)])
            holes += [(base + first, base + last) for first, last in inside]
            following = chunk + 1
            facts.stored += stored
            facts.stored_highest = base + highest
        facts.holes = [
            (first, min(last, facts.stored_highest))
            for first, last in ranges_of(holes)
            if first <= facts.stored_highest
        ]


def _add_heartbeats(
    known: _Known, latest: Iterable[dict[str, Any]], reported: Iterable[Any]
) -> None:
    for row in latest:
        facts = known.of(row["producer_id"])
        facts.heartbeat = row
        facts.service, facts.instance = row["service"], row["instance"]
    for producer_id, highest, settled, lost in reported:
        facts = known.of(producer_id)
        facts.reported_highest = highest
        facts.settled = max(facts.settled, settled)
        facts.lost = ranges_of((first, last) for first, last, _ in lost)


def _add_dead_letters(known: _Known, rows: Iterable[Any]) -> None:
    """Take the numbers of dead letters; one re-driven a while ago has to be stored by now."""
    for owner, numbers in rows:
        # An owner is what headers claim: one never heard of otherwise does not become a producer.
        if str(owner) in known.facts:
            known.of(owner).dead = ranges_of((number, number) for number in numbers)
