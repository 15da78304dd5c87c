"""Messages that could not be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from approvaltrail.schemas.messages import DeadLetterCause
from approvaltrail.store.answers import DeadLetter
from approvaltrail.store.queries.conditions import check_page

if TYPE_CHECKING:
    from approvaltrail.store.answers import TenantScope
    from approvaltrail.store.connection import Store

_COLUMNS = (
    "topic, partition, offset, cause, detail, producer_id, sequence, dead_lettered_at, redriven_at"
)


def dead_letters(store: Store, scope: TenantScope, limit: int) -> tuple[DeadLetter, ...]:
    """Return the newest; a tenant's viewer sees none, since what cannot be read has no tenant."""
    check_page(limit, 0)
    if scope.tenant is not None:
        return ()
    rows = store.query(
        f"SELECT {_COLUMNS} FROM dead_letters FINAL "  # noqa: S608
        "ORDER BY dead_lettered_at DESC, topic, partition, offset LIMIT {limit:UInt32}",
        {"limit": limit},
    )
    return tuple(
        DeadLetter(**{**row, "cause": DeadLetterCause(row["cause"])}) for row in rows.dicts()
    )
