"""The tenants that events of a range name, as far as the viewer may know of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from approvaltrail.store.queries.conditions import Conditions

if TYPE_CHECKING:
    from approvaltrail.store.answers import TenantScope, TimeRange
    from approvaltrail.store.connection import Store

MOST: Final = 1_000
"""More names than this are not listed; each can still be asked for."""


def tenants(store: Store, time_range: TimeRange, scope: TenantScope) -> tuple[str, ...]:
    """Return the names in order."""
    where = Conditions()
    where.during(time_range)
    where.within(scope)
    rows = store.query(
        f"SELECT DISTINCT tenant FROM events WHERE isNotNull(tenant) AND {where} "  # noqa: S608
        "ORDER BY tenant LIMIT {most:UInt32}",
        {**where.parameters, "most": MOST},
    ).rows
    return tuple(name for (name,) in rows)
