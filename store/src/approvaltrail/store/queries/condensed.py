"""How the events of often presented nonces belong together, computed by the store.

The rules are those of `linking.py`; of 100,000 presentations only what is shown leaves the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from approvaltrail.store.queries.links import EDGE, Links

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from approvaltrail.store.answers import TenantScope
    from approvaltrail.store.connection import Store
    from approvaltrail.store.queries.links import Key

# One row a nonce; its arrays' elements are (occurred_at, event_id, visible, known_spent).
# LIMIT BY and not DISTINCT, which takes quadratic time over such rows. Step by step, since a name
# that is used within its own SELECT is written out, and understood, at each use.
_LINKS: Final = """
WITH
  own AS (
    SELECT nonce_hash, occurred_at, event_id, event_type, nonce_trust = 'verified' AS sure,
      known_spent, {everything:Bool} OR ifNull(tenant = {scope:String}, false) AS visible
    FROM nonce_trail
    WHERE accepted IN (false, true) AND NONCES
    LIMIT 1 BY nonce_hash, event_id
  ),
  grouped AS (
    SELECT nonce_hash,
      arraySort(groupArrayIf((occurred_at, event_id, visible, known_spent), sure AND
        event_type IN ('accepted', 'refused', 'replayed'))) AS presented,
      arraySort(groupArrayIf((occurred_at, event_id, visible), sure AND event_type = 'issued'))
        AS issued,
      arraySort(groupArrayIf((occurred_at, event_id, visible), sure AND event_type = 'accepted'))
        AS accepted,
      arraySort(groupArrayIf((occurred_at, event_id, visible), sure AND event_type = 'completed'))
        AS completed,
      arraySort(groupArrayIf((occurred_at, event_id, visible), NOT sure)) AS claimed
    FROM own
    GROUP BY nonce_hash
  ),
  known AS (
    SELECT *, notEmpty(accepted) AS spent, (accepted[1].1, accepted[1].2) AS first FROM grouped
  ),
  told AS (
    SELECT *, arrayFilter(p -> p.4 OR (spent AND (p.1, p.2) > first), presented) AS again,
      arrayFilter(p -> NOT (p.4 OR (spent AND (p.1, p.2) >= first)), presented) AS before
    FROM known
  ),
  split AS (
    SELECT *, arrayFilter(p -> p.4, arrayMap((p, i) -> (p.1, p.2, toUInt64(i), p.3), again,
      arrayEnumerate(again))) AS numbered
    FROM told
  )
"""


def condensed_of_nonce(store: Store, nonce: str, scope: TenantScope) -> Links | None:
    """Return how the events of one nonce belong together, None when there are none."""
    found = _links(
        store, "nonce_hash = sipHash64({nonce:String})", _edges("numbered"), scope, {"nonce": nonce}
    )
    return found[0] if found else None


def condensed_of_hashes(
    store: Store, hashes: Sequence[int], event_ids: Sequence[UUID], scope: TenantScope
) -> dict[int, Links]:
    """Return the same for many nonces, with the numbers of the given events."""
    if not hashes:
        return {}
    chosen = "arrayFilter(p -> has({ids:Array(UUID)}, p.2), numbered)"
    parameters = {"hashes": list(dict.fromkeys(hashes)), "ids": list(event_ids)}
    found = _links(store, "nonce_hash IN {hashes:Array(UInt64)}", chosen, scope, parameters)
    return {links.nonce_hash: links for links in found}


def _edges(array: str) -> str:
    """First and last `EDGE` of an array, all of it when it is not longer than both."""
    return (
        f"if(length({array}) <= {2 * EDGE}, {array}, "
        f"arrayConcat(arraySlice({array}, 1, {EDGE}), arraySlice({array}, -{EDGE})))"
    )


def _links(
    store: Store, nonces: str, chosen: str, scope: TenantScope, parameters: dict[str, Any]
) -> list[Links]:
    visible = "arrayFilter(p -> p.3, {})"
    # a nonce may have many completions when its tool does not spend it; the first come first
    sql = (
        _LINKS.replace("NONCES", nonces)
        + f"""SELECT nonce_hash, issued[1] AS issue, notEmpty(issued) AS is_issued,
  accepted[1] AS acceptance, spent, arraySlice({visible.format("completed")}, 1, {EDGE}) AS ended,
  {chosen} AS reused, length(again) AS reuses_total,
  arrayFilter(p -> p.3, {_edges("before")}) AS early,
  arraySlice({visible.format("claimed")}, 1, {EDGE}) AS claims,
  length({visible.format("claimed")}) AS claimed_total,
  arrayCount(p -> NOT p.3, presented) AS withheld
FROM split"""  # noqa: S608 - no value stands in it
    )
    rows = store.query(
        sql,
        {
            **parameters,
            "everything": scope.tenant is None,
            "scope": scope.tenant or "",
        },
    )
    return [_read(row) for row in rows.dicts()]


def _read(row: dict[str, Any]) -> Links:
    return Links(
        nonce_hash=row["nonce_hash"],
        issuance=_seen(row["issue"], exists=row["is_issued"]),
        issued=bool(row["is_issued"]),
        acceptance=_seen(row["acceptance"], exists=row["spent"]),
        accepted=bool(row["spent"]),
        completions=_keys(row["ended"]),
        reuses=tuple(((one[0], one[1]), one[2]) for one in row["reused"]),
        reuses_total=row["reuses_total"],
        early=_keys(row["early"]),
        claimed=_keys(row["claims"]),
        claimed_total=row["claimed_total"],
        withheld=row["withheld"],
    )


def _seen(element: Sequence[Any], *, exists: int) -> Key | None:
    return (element[0], element[1]) if exists and element[2] else None


def _keys(elements: Sequence[Sequence[Any]]) -> tuple[Key, ...]:
    return tuple((element[0], element[1]) for element in elements)
