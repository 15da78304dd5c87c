"""Counts over time, exact under redelivery.

A range's whole buckets come from the tables of sequence sets; what sticks out at its two ends, less
than a bucket each, comes from the events themselves. A tenant's own counts come from its events.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from approvaltrail.schemas.events import EventType, Reason
from approvaltrail.store.answers import CountRow, Overview, TimeRange
from approvaltrail.store.queries.busiest import busiest
from approvaltrail.store.queries.conditions import INSTANT, Conditions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from approvaltrail.store.answers import TenantScope
    from approvaltrail.store.connection import Store

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
_BUCKETS: Final = (
    _MINUTE,
    5 * _MINUTE,
    15 * _MINUTE,
    _HOUR,
    3 * _HOUR,
    6 * _HOUR,
    _DAY,
    7 * _DAY,
)
_MOST_BUCKETS: Final = 100
_TABLES: Final = ((_DAY, "count_1d"), (_HOUR, "count_1h"), (5 * _MINUTE, "count_5m"))
_LONG: Final = 10 * _DAY


@dataclass(frozen=True, slots=True)
class _Count:
    bucket: int
    event_type: str
    reason: str
    events: int


def overview(store: Store, time_range: TimeRange, scope: TenantScope) -> Overview:
    """Return the counts of a range, beside the period of equal length before it."""
    bucket = bucket_of(time_range.length)
    before = TimeRange(time_range.start - time_range.length, time_range.start)
    counts, earlier, ranking = store.together(
        lambda: _counts(store, time_range, scope, bucket),
        lambda: _counts(store, before, scope, None),
        lambda: busiest(store, time_range, scope),
    )
    totals: Counter[EventType] = Counter()
    refusals: Counter[Reason] = Counter()
    for count in counts:
        event_type = EventType(count.event_type)
        totals[event_type] += count.events
        if event_type is EventType.REFUSED:
            refusals[reason_of(count.reason) or Reason.OTHER] += count.events
    previous: Counter[EventType] = Counter()
    for count in earlier:
        previous[EventType(count.event_type)] += count.events
    return Overview(
        counts={one: totals[one] for one in EventType},
        previous={one: previous[one] for one in EventType},
        refusals=dict(refusals.most_common()),
        series=_series(counts),
        bucket=bucket,
        busiest_tenants=ranking["tenant"],
        busiest_tools=ranking["tool"],
        busiest_principals=ranking["principal"],
    )


def bucket_of(length: timedelta) -> timedelta:
    """Return the bucket in which a range of this length is drawn."""
    return next((one for one in _BUCKETS if one * _MOST_BUCKETS >= length), _BUCKETS[-1])


def _series(counts: Sequence[_Count]) -> tuple[CountRow, ...]:
    ordered = sorted(counts, key=lambda count: (count.bucket, count.event_type, count.reason))
    return tuple(
        CountRow(
            bucket=EPOCH + timedelta(seconds=count.bucket),
            event_type=EventType(count.event_type),
            reason=reason_of(count.reason),
            events=count.events,
        )
        for count in ordered
    )


def reason_of(text: str) -> Reason | None:
    """Read a stored reason; one that only a newer version knows is another one."""
    if not text:
        return None
    try:
        return Reason(text)
    except ValueError:  # a newer producer's
        return Reason.OTHER


def _counts(
    store: Store, time_range: TimeRange, scope: TenantScope, bucket: timedelta | None
) -> list[_Count]:
    """Count a range by bucket, type and reason; with no bucket, all in one."""
    seconds = int(bucket.total_seconds()) if bucket else 2**32
    parameters: dict[str, Any] = {"seconds": seconds}
    if scope.tenant is None:
        # a series needs a table that its bars are made of; a sum takes the one with fewest rows
        coarsest = bucket or (_DAY if time_range.length >= _LONG else _HOUR)
        sources = [_set_source(*part) for part in _parts(time_range, coarsest)]
    else:
        sources = [_event_source(time_range, scope)]
    texts = []
    for place, (text, values) in enumerate(sources):
        texts.append(text.replace("@", str(place)))
        parameters |= {name.replace("@", str(place)): value for name, value in values.items()}
    if not texts:
        return []
    rows = store.query(
        "SELECT bar, event_type, reason, sum(n) FROM ("  # noqa: S608
        + " UNION ALL ".join(texts)
        + ") GROUP BY bar, event_type, reason",
        parameters,
    ).rows
    # a type that only a newer version knows has no place among these counts
    return [_Count(bar * seconds, *rest) for bar, *rest in rows if rest[0] in set(EventType)]


def _parts(time_range: TimeRange, bucket: timedelta) -> list[tuple[str, TimeRange]]:
    """Cut a range into what a table of sets holds whole, and its ends.

    The ends of days come from hours; those of anything shorter are few events.
    """
    for size, table in _TABLES:
        start, end = _ceiling(time_range.start, size), _floor(time_range.end, size)
        if size > bucket or start >= end:
            continue
        finer = _HOUR if size > _HOUR else timedelta(0)
        return [
            *_parts(TimeRange(time_range.start, start), finer),
            (table, TimeRange(start, end)),
            *_parts(TimeRange(end, time_range.end), finer),
        ]
    return [("events", time_range)] if time_range.start < time_range.end else []


def _floor(instant: datetime, size: timedelta) -> datetime:
    return instant - (instant - EPOCH) % size


def _ceiling(instant: datetime, size: timedelta) -> datetime:
    return _floor(instant + size - timedelta(microseconds=1), size)


def _set_source(table: str, time_range: TimeRange) -> tuple[str, dict[str, Any]]:
    """Count a part of the range from sequence sets; `@` stands for the part's place."""
    values = {"start@": time_range.start, "end@": time_range.end}
    span = f"{{start@:{INSTANT}}} AND {{}} < {{end@:{INSTANT}}}"
    if table == "events":
        inner = (
            "event_type, ifNull(events.reason, '') AS reason, producer_id,"
            " intDiv(sequence, 4294967296) AS epoch,"
            " groupBitmap(toUInt32(sequence % 4294967296)) AS n"
        )
        column, at = "occurred_at", "toDateTime(occurred_at, 'UTC')"
    else:
        inner = "event_type, reason, producer_id, epoch, groupBitmapMerge(sequences) AS n"
        column = at = "bucket"
    during = f"{column} >= " + span.replace("{}", column)
    text = (
        f"SELECT bar, event_type, reason, sum(n) AS n FROM ("  # noqa: S608
        f"SELECT intDiv(toUInt32({at}), {{seconds:UInt64}}) AS bar, {inner} FROM {table} "
        f"WHERE {during} GROUP BY bar, event_type, reason, producer_id, epoch) "
        "GROUP BY bar, event_type, reason"
    )
    return text, values


def _event_source(time_range: TimeRange, scope: TenantScope) -> tuple[str, dict[str, Any]]:
    where = Conditions()
    where.during(time_range)
    where.within(scope)
    text = (
        "SELECT intDiv(toUInt32(toDateTime(occurred_at, 'UTC')), {seconds:UInt64}) AS bar, "  # noqa: S608
        "event_type, ifNull(events.reason, '') AS reason, uniqExact(event_id) AS n "
        f"FROM events WHERE {where} GROUP BY bar, event_type, reason"
    )
    return text, where.parameters
