"""A page of events and the exact total."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from approvaltrail.store.answers import EventFilter, EventPage
from approvaltrail.store.queries.conditions import Conditions, check_page, events_by_key

if TYPE_CHECKING:
    from approvaltrail.store.answers import TenantScope, TimeRange
    from approvaltrail.store.connection import Store

_SEARCHED: Final = ("target", "principal", "nonce", "plan_summary", "client_name")
_EXACT: Final = (
    "tenant",
    "tool",
    "target",
    "principal",
    "credential_id",
    "event_type",
    "reason",
    "outcome",
    "nonce_trust",
    "nonce",
)


def events(
    store: Store,
    time_range: TimeRange,
    scope: TenantScope,
    wanted: EventFilter | None,
    limit: int,
    offset: int,
) -> EventPage:
    """Return one page, newest first."""
    check_page(limit, offset)
    where = conditions_of(time_range, scope, wanted or EventFilter())
    keys = store.query(
        f"SELECT occurred_at, event_id FROM events WHERE {where} "  # noqa: S608
        "ORDER BY occurred_at DESC, event_id DESC LIMIT 1 BY occurred_at, event_id "
        "LIMIT {limit:UInt32} OFFSET {offset:UInt32}",
        {**where.parameters, "limit": limit, "offset": offset},
    ).rows
    if offset == 0 and len(keys) < limit:
        total = len(keys)
    else:
        # FINAL counts rows with one key once; it costs little, since most parts do not overlap
        counted = f"SELECT count() FROM events FINAL WHERE {where}"  # noqa: S608
        total = store.query(counted, where.parameters).scalar()
    found = events_by_key(store, [(at, event_id) for at, event_id in keys], scope)
    return EventPage(
        events=tuple(found[at, event_id] for at, event_id in keys if (at, event_id) in found),
        total=total,
    )


def conditions_of(time_range: TimeRange, scope: TenantScope, wanted: EventFilter) -> Conditions:
    """Return what holds events to a range, a scope and a filter."""
    where = Conditions()
    where.during(time_range)
    where.within(scope)
    for name in _EXACT:
        where.equal(name, getattr(wanted, name))
    if wanted.address is not None:
        where.add(
            "client_address = {address:String} OR peer_address = {address:String}",
            address=wanted.address,
        )
    if wanted.text:
        found = " OR ".join(
            f"positionCaseInsensitiveUTF8(ifNull({name}, ''), {{text:String}}) > 0"
            for name in _SEARCHED
        )
        where.add(found, text=wanted.text)
    return where
