"""How the sink is doing, as far as what it stored can tell: when, how much, how late."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from approvaltrail.store.answers import Arrivals
from approvaltrail.store.queries.conditions import INSTANT, Conditions

if TYPE_CHECKING:
    from datetime import datetime

    from approvaltrail.store.answers import TenantScope
    from approvaltrail.store.connection import Store

WINDOW: Final = timedelta(minutes=15)
_LATELY: Final = """
SELECT max(kept_at), count(), quantilesExact(0.5, 0.99)(late)
FROM (
  SELECT event_id, min(stored_at) AS kept_at,
    dateDiff('millisecond', min(recorded_at), kept_at) AS late
  FROM events WHERE stored_at >= {since:INSTANT} AND WANTED GROUP BY event_id
)
""".replace("INSTANT", INSTANT)


def arrivals(store: Store, scope: TenantScope, now: datetime) -> Arrivals:
    """Look at what happened and was stored within the quarter of an hour before `now`."""
    where = Conditions()
    where.within(scope)
    where.add(f"occurred_at >= {{since:{INSTANT}}}")
    since = {"since": now - WINDOW}
    ((latest, count, late),) = store.query(
        _LATELY.replace("WANTED", str(where)), {**where.parameters, **since}
    ).rows
    if not count:
        return Arrivals(last_stored_at=_last(store, scope), window=WINDOW, stored=0)
    median, worst = (timedelta(milliseconds=max(0, one)) for one in late)
    return Arrivals(
        last_stored_at=latest, window=WINDOW, stored=count, median_delay=median, p99_delay=worst
    )


def _last(store: Store, scope: TenantScope) -> datetime | None:
    """Find when anything was stored last, among what happened in the last hour of the trail."""
    where = Conditions()
    where.within(scope)
    rows = store.query(
        f"SELECT max(stored_at), count() FROM events WHERE {where} AND occurred_at >= "  # noqa: S608
        f"(SELECT max(occurred_at) FROM events WHERE {where}) - INTERVAL 1 HOUR",
        where.parameters,
    ).rows
    return next((at for at, count in rows if count), None)
