"""Which tenants, tools and callers have the most events of a range, exactly.

The whole days of a long range come from tables that keep sets by the day; its ends, less than a day
each, come from the events. A short range comes from the events alone, and so do one tenant's.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from approvaltrail.store.answers import Ranked, TimeRange
from approvaltrail.store.queries.conditions import INSTANT, Conditions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from approvaltrail.store.answers import TenantScope
    from approvaltrail.store.connection import Store

BUSIEST: Final = 10
KINDS: Final = ("tenant", "tool", "principal")
Ranking = dict[str, tuple[Ranked, ...]]

_DAY: Final = timedelta(days=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FEW_DAYS: Final = 2
"""Fewer whole days than this are read from the events, like the ends."""
_FIRST_CANDIDATES: Final = 50

_BY_KIND: Final = (
    "SELECT multiIf(grouping(tenant) = 0, 'tenant', grouping(tool) = 0, 'tool', 'principal') "
    "AS kind, coalesce(tenant, tool, principal) AS name, count() AS n FROM ("
    "SELECT tenant, toNullable(tool) AS tool, principal FROM {source}) "
    "GROUP BY GROUPING SETS ((tenant), (tool), (principal)) HAVING isNotNull(name) "
)
_MOST: Final = "ORDER BY n DESC, name LIMIT {busiest:UInt8} BY kind"
# FINAL costs little where rows are few; a tenant's events are few among many, so that telling
# those apart by identity costs less than putting all in order.
_OF_ALL: Final = _BY_KIND.replace("{source}", "events FINAL WHERE WANTED") + _MOST
_OF_ONE: Final = (
    _BY_KIND.replace("{source}", "events WHERE WANTED LIMIT 1 BY occurred_at, event_id") + _MOST
)
_WHOLE: Final = f"bucket >= {{first:{INSTANT}}} AND bucket < {{last:{INSTANT}}}"
_ENDS: Final = (
    f"(occurred_at >= {{start:{INSTANT}}} AND occurred_at < {{first:{INSTANT}}}"
    f" OR occurred_at >= {{last:{INSTANT}}} AND occurred_at < {{end:{INSTANT}}})"
)
_BY_SETS: Final = f"""
SELECT kind, name, sum(n) AS n
FROM (
  SELECT kind, name, groupBitmapMerge(sequences) AS n FROM busiest_1d
  WHERE kind IN ('tenant', 'tool') AND {_WHOLE}
  GROUP BY kind, name, producer_id, epoch
  UNION ALL
  SELECT if(grouping(tenant) = 0, 'tenant', 'tool') AS kind, coalesce(tenant, tool) AS name,
    count() AS n
  FROM (SELECT tenant, toNullable(toString(tool)) AS tool FROM events FINAL WHERE {_ENDS})
  GROUP BY GROUPING SETS ((tenant), (tool)) HAVING isNotNull(name)
)
GROUP BY kind, name
ORDER BY n DESC, name LIMIT {{busiest:UInt8}} BY kind
"""  # noqa: S608 - no value stands in it
# Parts that are not merged yet may hold an event twice, so that lengths add up to no less than the
# number of events: enough to say who cannot be among the busiest.
_CANDIDATES: Final = f"""
SELECT principal, sum(n) AS at_most
FROM (
  SELECT principal, sum(length(event_hashes)) AS n FROM callers_1d WHERE {_WHOLE}
  GROUP BY principal
  UNION ALL
  SELECT assumeNotNull(events.principal) AS principal, count() AS n FROM events
  WHERE isNotNull(events.principal) AND {_ENDS}
  GROUP BY principal
)
GROUP BY principal
ORDER BY at_most DESC, principal LIMIT {{candidates:UInt32}}
"""  # noqa: S608 - no value stands in it
_EXACTLY: Final = f"""
SELECT principal, sum(n) AS n
FROM (
  SELECT principal, length(groupUniqArrayArray(event_hashes)) AS n FROM callers_1d
  WHERE {_WHOLE} AND principal IN {{principals:Array(String)}}
  GROUP BY principal
  UNION ALL
  SELECT assumeNotNull(events.principal) AS principal, uniqExact(event_id) AS n FROM events
  WHERE {_ENDS} AND events.principal IN {{principals:Array(String)}}
  GROUP BY principal
)
GROUP BY principal
ORDER BY n DESC, principal LIMIT {{busiest:UInt8}}
"""  # noqa: S608 - no value stands in it


def busiest(store: Store, time_range: TimeRange, scope: TenantScope) -> Ranking:
    """Return the ten names of each kind with the most events, each event counted once."""
    days = _whole_days(time_range)
    if scope.tenant is not None or days is None:
        return _from_events(store, time_range, scope)
    parameters = {
        "start": time_range.start,
        "first": days.start,
        "last": days.end,
        "end": time_range.end,
        "busiest": BUSIEST,
    }
    rows, callers = store.together(
        lambda: store.query(_BY_SETS, parameters).rows, lambda: _callers(store, parameters)
    )
    return _ranking([*rows, *(("principal", *one) for one in callers)])


def _whole_days(time_range: TimeRange) -> TimeRange | None:
    start = time_range.start + (_EPOCH - time_range.start) % _DAY
    end = time_range.end - (time_range.end - _EPOCH) % _DAY
    return TimeRange(start, end) if end - start >= _FEW_DAYS * _DAY else None


def _from_events(store: Store, time_range: TimeRange, scope: TenantScope) -> Ranking:
    where = Conditions()
    where.during(time_range)
    where.within(scope)
    sql = _OF_ALL if scope.tenant is None else _OF_ONE
    rows = store.query(
        sql.replace("WANTED", str(where)), {**where.parameters, "busiest": BUSIEST}
    ).rows
    return _ranking(rows)


def _callers(store: Store, parameters: dict[str, object]) -> Sequence[tuple[str, int]]:
    """Rank callers: those who may be among the busiest by a bound are counted exactly."""
    candidates = _FIRST_CANDIDATES
    while True:
        bounds = store.query(_CANDIDATES, {**parameters, "candidates": candidates}).rows
        names = [name for name, _ in bounds]
        if not names:
            return []
        exact = store.query(_EXACTLY, {**parameters, "principals": names}).rows
        everybody = len(bounds) < candidates
        if everybody or (len(exact) == BUSIEST and exact[-1][1] > bounds[-1][1]):
            return [(name, count) for name, count in exact]
        candidates *= 8


def _ranking(rows: Iterable[Sequence[object]]) -> Ranking:
    ranked: defaultdict[str, list[Ranked]] = defaultdict(list)
    for kind, name, count in rows:
        ranked[str(kind)].append(Ranked(name=str(name), events=int(str(count))))
    return {kind: tuple(ranked[kind]) for kind in KINDS}
