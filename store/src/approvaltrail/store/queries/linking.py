"""How a nonce's events belong together, from their keys alone.

A presentation of a verified nonce is a reuse when the gate itself found the nonce spent, or when it
stands after the nonce's first stored acceptance in the order of (occurred_at, event_id). Reuses are
numbered over all tenants; a viewer of one tenant is given the numbers of its own.

A nonce has a handful of events, which are linked here: a statement that links them takes the store
four times as long to understand as one that reads them. Where there are more than `MOST_KEYS`, the
store links and condenses them all the same (`condensed.py`).
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from approvaltrail.schemas.events import EventType, NonceTrust
from approvaltrail.store.queries.condensed import condensed_of_hashes, condensed_of_nonce
from approvaltrail.store.queries.conditions import order_of
from approvaltrail.store.queries.links import EDGE, Links

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from approvaltrail.store.answers import TenantScope
    from approvaltrail.store.connection import Store
    from approvaltrail.store.queries.conditions import Order
    from approvaltrail.store.queries.links import Key

MOST_KEYS: Final = 2_000
_Item = TypeVar("_Item")
_PRESENTED: Final = (EventType.ACCEPTED, EventType.REFUSED, EventType.REPLAYED)
_ROWS: Final = """
SELECT nonce_hash, occurred_at, event_id, event_type, nonce_trust, known_spent,
  {everything:Bool} OR ifNull(tenant = {scope:String}, false) AS visible
FROM nonce_trail
WHERE accepted IN (false, true) AND NONCES
LIMIT {most:UInt32}
"""


class _Row(NamedTuple):
    """One event of a nonce."""

    nonce_hash: int
    occurred_at: datetime
    event_id: UUID
    event_type: str
    nonce_trust: str
    known_spent: bool
    visible: bool

    @property
    def key(self) -> Key:
        return self.occurred_at, self.event_id


def links_of_nonce(
    store: Store, nonce: str, scope: TenantScope, *, most: int = MOST_KEYS
) -> Links | None:
    """Return how the events of one nonce belong together, None when there are none."""
    rows = _rows(store, "nonce_hash = sipHash64({nonce:String})", scope, most, {"nonce": nonce})
    if rows is None:
        return condensed_of_nonce(store, nonce, scope)
    return next((_links(own, None) for own in _by_nonce(rows)), None)


def links_of_hashes(
    store: Store,
    hashes: Sequence[int],
    event_ids: Sequence[UUID],
    scope: TenantScope,
    *,
    most: int = MOST_KEYS,
) -> dict[int, Links]:
    """Return the same for many nonces, with the numbers of the given events."""
    if not hashes:
        return {}
    chosen = set(event_ids)
    wanted = {"hashes": list(dict.fromkeys(hashes))}
    rows = _rows(store, "nonce_hash IN {hashes:Array(UInt64)}", scope, most, wanted)
    if rows is None:
        return condensed_of_hashes(store, hashes, event_ids, scope)
    return {own[0].nonce_hash: _links(own, chosen) for own in _by_nonce(rows)}


def _rows(
    store: Store, nonces: str, scope: TenantScope, most: int, parameters: dict[str, Any]
) -> list[_Row] | None:
    """Read what is known by key; None when it is more than `most` rows."""
    rows = store.query(
        _ROWS.replace("NONCES", nonces),
        {
            **parameters,
            "everything": scope.tenant is None,
            "scope": scope.tenant or "",
            "most": most + 1,
        },
    ).rows
    return None if len(rows) > most else [_Row(*row) for row in rows]


def _by_nonce(rows: Iterable[_Row]) -> list[list[_Row]]:
    """Part rows by their nonces, each event once and in order."""
    distinct = {(row.nonce_hash, row.event_id): row for row in rows}.values()
    ordered = sorted(distinct, key=lambda row: (row.nonce_hash, *order_of(row.key)))
    return [list(own) for _, own in groupby(ordered, key=lambda row: row.nonce_hash)]


def _links(own: Sequence[_Row], chosen: set[UUID] | None) -> Links:
    """Link one nonce's events; `chosen` are the reuses to number, None for those at both ends."""
    sure = [row for row in own if row.nonce_trust == NonceTrust.VERIFIED]
    issued, accepted, completed = (
        [row for row in sure if row.event_type == kind]
        for kind in (EventType.ISSUED, EventType.ACCEPTED, EventType.COMPLETED)
    )
    presented = [row for row in sure if row.event_type in _PRESENTED]
    first = order_of(accepted[0].key) if accepted else None
    again = [
        row
        for row in presented
        if row.known_spent or (_reached(row, first) and order_of(row.key) != first)
    ]
    numbered = [(row.key, number) for number, row in enumerate(again, 1) if row.visible]
    before = [row for row in presented if not (row.known_spent or _reached(row, first))]
    claimed = [row.key for row in own if row.visible and row.nonce_trust != NonceTrust.VERIFIED]
    return Links(
        nonce_hash=own[0].nonce_hash,
        issuance=_seen(issued),
        issued=bool(issued),
        acceptance=_seen(accepted),
        accepted=bool(accepted),
        completions=tuple(row.key for row in completed if row.visible)[:EDGE],
        reuses=tuple(_edges(numbered))
        if chosen is None
        else tuple(one for one in numbered if one[0][1] in chosen),
        reuses_total=len(again),
        early=tuple(row.key for row in _edges(before) if row.visible),
        claimed=tuple(claimed[:EDGE]),
        claimed_total=len(claimed),
        withheld=sum(1 for row in presented if not row.visible),
    )


def _reached(row: _Row, first: Order | None) -> bool:
    return first is not None and order_of(row.key) >= first


def _seen(rows: Sequence[_Row]) -> Key | None:
    return rows[0].key if rows and rows[0].visible else None


def _edges(items: list[_Item]) -> list[_Item]:
    return items if len(items) <= 2 * EDGE else items[:EDGE] + items[-EDGE:]
