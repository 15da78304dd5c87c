"""What else a caller did around an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from approvaltrail.store.answers import TimeRange
from approvaltrail.store.queries.conditions import Conditions, check_page, events_by_key

if TYPE_CHECKING:
    from datetime import timedelta

    from approvaltrail.store.answers import StoredEvent, TenantScope
    from approvaltrail.store.connection import Store

_CALLER = ("principal", "credential_id", "session_id", "client_address")
"""The first of these that is known says who the caller was."""


def neighbours(
    store: Store, stored: StoredEvent, scope: TenantScope, around: timedelta, limit: int
) -> tuple[StoredEvent, ...]:
    """Return the nearest `limit` events of the same caller and tenant, oldest first."""
    check_page(limit, 0)
    event = stored.event
    caller = next((name for name in _CALLER if getattr(event, name) is not None), None)
    if caller is None:
        return ()
    where = Conditions()
    where.during(TimeRange(event.occurred_at - around, event.occurred_at + around))
    where.within(scope)
    where.equal(caller, getattr(event, caller))
    where.equal("tenant", event.tenant)
    where.add("event_id != {event_id:UUID}", event_id=event.event_id)
    rows = store.query(
        f"SELECT occurred_at, event_id FROM events WHERE {where} "  # noqa: S608
        "ORDER BY abs(dateDiff('microsecond', occurred_at, {at:DateTime64(6, 'UTC')})), event_id "
        "LIMIT 1 BY event_id LIMIT {limit:UInt32}",
        {**where.parameters, "at": event.occurred_at, "limit": limit},
    ).rows
    found = events_by_key(store, [(at, event_id) for at, event_id in rows], scope)
    return tuple(found.values())
