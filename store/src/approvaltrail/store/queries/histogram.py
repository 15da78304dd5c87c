"""How the events of a filter spread over a range, and over what they have in common."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from approvaltrail.schemas.events import EventType
from approvaltrail.store.answers import CountRow, EventFilter, Histogram, Ranked
from approvaltrail.store.queries.events import conditions_of
from approvaltrail.store.queries.overview import EPOCH, bucket_of, reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from approvaltrail.store.answers import TenantScope, TimeRange
    from approvaltrail.store.connection import Store

RANKED_FIELDS: Final = ("tenant", "tool", "principal", "client_address", "service")
"""What events may be ranked by."""
_RANKS: Final = 10


def histogram(
    store: Store, time_range: TimeRange, scope: TenantScope, wanted: EventFilter | None
) -> Histogram:
    """Count the events of a filter by bucket, type and reason; each event counts once."""
    bucket = bucket_of(time_range.length)
    where = conditions_of(time_range, scope, wanted or EventFilter())
    rows = store.query(
        "SELECT intDiv(toUInt32(toDateTime(occurred_at, 'UTC')), {seconds:UInt64}) AS bar, "  # noqa: S608
        "event_type, ifNull(events.reason, '') AS cause, uniqExact(event_id) AS n "
        f"FROM events WHERE {where} GROUP BY bar, event_type, cause "
        "ORDER BY bar, event_type, cause",
        {**where.parameters, "seconds": int(bucket.total_seconds())},
    ).rows
    series = tuple(
        CountRow(
            bucket=EPOCH + bar * bucket,
            event_type=EventType(event_type),
            reason=reason_of(cause),
            events=count,
        )
        for bar, event_type, cause, count in rows
    )
    return Histogram(series=series, bucket=bucket)


def ranking(
    store: Store,
    time_range: TimeRange,
    scope: TenantScope,
    wanted: EventFilter | None,
    fields: Sequence[str],
) -> dict[str, tuple[Ranked, ...]]:
    """Return the ten most frequent values of each field among the events of a filter.

    Raises:
        ValueError: a field that is not among `RANKED_FIELDS`.
    """
    unknown = set(fields) - set(RANKED_FIELDS)
    if unknown or not fields:
        raise ValueError(f"events are ranked by some of {', '.join(RANKED_FIELDS)}")
    where = conditions_of(time_range, scope, wanted or EventFilter())
    kinds = ", ".join(f"grouping({name}) = 0, '{name}'" for name in fields[:-1])
    kind = f"multiIf({kinds}, '{fields[-1]}')" if kinds else f"'{fields[0]}'"
    columns = ", ".join(f"toNullable(toString({name})) AS {name}" for name in fields)
    rows = store.query(
        f"SELECT {kind} AS kind, coalesce({', '.join(fields)}) AS name, count() AS n FROM ("  # noqa: S608
        f"SELECT {columns} FROM (SELECT * FROM events FINAL WHERE {where})) "
        f"GROUP BY GROUPING SETS ({', '.join(f'({name})' for name in fields)}) "
        "HAVING isNotNull(name) ORDER BY n DESC, name LIMIT {ranks:UInt8} BY kind",
        {**where.parameters, "ranks": _RANKS},
    ).rows
    ranked: defaultdict[str, list[Ranked]] = defaultdict(list)
    for found, name, count in rows:
        ranked[found].append(Ranked(name=name, events=count))
    return {name: tuple(ranked[name]) for name in fields}
