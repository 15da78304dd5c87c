"""Reuses presented in a range, newest first, exact.

They come from two places, asked at once. What was turned down is few rows, kept by time; a refusal
among them is a reuse when its nonce had been accepted before. A second acceptance can only come
within its token's life. Either way the first acceptance stands after the oldest issuance of any
token in question, so that it is found among the narrow rows of `acceptances`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from approvaltrail.store.answers import ReuseFilter, ReusePage
from approvaltrail.store.queries.assembly import keys_of, reuse_of
from approvaltrail.store.queries.conditions import (
    INSTANT,
    Conditions,
    check_page,
    events_by_key,
    order_of,
)
from approvaltrail.store.queries.linking import links_of_hashes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from approvaltrail.store.answers import TenantScope, TimeRange
    from approvaltrail.store.connection import Store

_CLOCKS: Final = "INTERVAL 5 MINUTE"
"""So far apart the clocks of two servers may be."""
# Where there is nothing to look for, the least of nothing must not be 1970.
_FOUND: Final = """
SELECT count() AS total, groupUniqArray(nonce_hash) AS tokens,
  arraySlice(arrayReverseSort(groupArray((occurred_at, event_id, nonce_hash))),
    {skipped:UInt32} + 1, {most:UInt32}) AS newest
FROM"""
_LATE: Final = f"""
WITH
  refused AS (SELECT nonce_hash, since FROM turned_down WHERE NOT known_spent AND WANTED),
  (SELECT ifNull(minOrNull(since), {{end:{INSTANT}}}) - {_CLOCKS} FROM refused) AS oldest,
  accepted_before AS (
    SELECT nonce_hash, min((occurred_at, event_id)) AS first FROM acceptances
    WHERE occurred_at >= oldest AND occurred_at < {{end:{INSTANT}}}
      AND nonce_hash IN (SELECT nonce_hash FROM refused)
    GROUP BY nonce_hash
  ),
  candidates AS (
    SELECT occurred_at, event_id, nonce_hash, known_spent FROM turned_down FINAL WHERE WANTED
  )
{_FOUND} (
  SELECT occurred_at, event_id, candidates.nonce_hash AS nonce_hash
  FROM candidates LEFT JOIN accepted_before ON candidates.nonce_hash = accepted_before.nonce_hash
  WHERE known_spent OR (accepted_before.nonce_hash != 0 AND (occurred_at, event_id) > first)
)"""  # noqa: S608 - no value stands in it
# An acceptance that was stored twice is looked at once more and found to be one.
_AGAIN: Final = f"""
WITH
  (
    SELECT ifNull(minOrNull(since), {{end:{INSTANT}}}) - {_CLOCKS}
    FROM acceptances WHERE DURING
  ) AS oldest,
  doubled AS (
    SELECT nonce_hash FROM acceptances
    WHERE occurred_at >= oldest AND occurred_at < {{end:{INSTANT}}}
    GROUP BY nonce_hash HAVING count() > 1
  ),
  ordered AS (
    SELECT nonce_hash, arraySort(groupUniqArray((occurred_at, event_id))) AS keys FROM nonce_trail
    WHERE accepted AND nonce_hash IN (SELECT nonce_hash FROM doubled)
    GROUP BY nonce_hash
  ),
  again AS (
    SELECT key.1 AS occurred_at, key.2 AS event_id
    FROM ordered ARRAY JOIN arraySlice(keys, 2) AS key
  )
{_FOUND} (
  SELECT occurred_at, event_id, sipHash64(assumeNotNull(nonce)) AS nonce_hash FROM events
  WHERE (occurred_at, event_id) IN (SELECT occurred_at, event_id FROM again) AND WANTED
  LIMIT 1 BY occurred_at, event_id
)"""  # noqa: S608 - no value stands in it


class _Found(NamedTuple):
    """Reuses of one kind: how many, of which nonces, and those that the page may hold."""

    total: int
    tokens: frozenset[int]
    newest: Sequence[tuple[datetime, UUID, int]]


def reuses(
    store: Store,
    time_range: TimeRange,
    scope: TenantScope,
    wanted: ReuseFilter | None,
    limit: int,
    offset: int,
) -> ReusePage:
    """Return one page of reuses, how many there are, and of how many nonces."""
    check_page(limit, offset)
    wanted = wanted or ReuseFilter()
    (total, tokens, page), claimed = store.together(
        lambda: _page(store, time_range, scope, wanted, limit, offset),
        lambda: _claimed(store, time_range, scope, wanted),
    )
    found, read = store.together(
        lambda: links_of_hashes(store, [one[2] for one in page], [one[1] for one in page], scope),
        lambda: events_by_key(store, [(one[0], one[1]) for one in page], scope),
    )
    linked = {key for links in found.values() for key in keys_of(links)}
    read |= events_by_key(store, linked - set(read), scope)
    answered = []
    for at, event_id, nonce_hash in page:
        links, presentation = found.get(nonce_hash), read.get((at, event_id))
        if links is not None and presentation is not None:
            number = dict(links.reuses).get((at, event_id), 0)
            answered.append(reuse_of(presentation, number, links, read))
    return ReusePage(
        reuses=tuple(answered),
        total=total,
        tokens=tokens,
        claimed=claimed,
    )


def _page(
    store: Store,
    time_range: TimeRange,
    scope: TenantScope,
    wanted: ReuseFilter,
    limit: int,
    offset: int,
) -> tuple[int, int, Sequence[tuple[datetime, UUID, int]]]:
    """Return how many reuses there are, of how many nonces, and the keys of one page."""
    where = _where(time_range, scope, wanted)
    during = Conditions()
    during.during(time_range)
    second = _AGAIN.replace("DURING", str(during))
    skipped = 0
    if wanted.strict_replays_only:
        late = _found(store, _LATE, where, offset, limit)
        return late.total, len(late.tokens), late.newest
    if not offset:
        again, late = store.together(
            lambda: _found(store, second, where, 0, limit),
            lambda: _found(store, _LATE, where, 0, limit),
        )
    else:  # however far down a page is, only what may stand on it is read
        again = _found(store, second, where, 0, offset + limit)
        skipped = max(0, offset - again.total)
        late = _found(store, _LATE, where, skipped, offset - skipped + limit)
    newest = sorted([*late.newest, *again.newest], key=lambda one: order_of(one[:2]), reverse=True)
    page = newest[offset - skipped : offset - skipped + limit]
    return late.total + again.total, len(late.tokens | again.tokens), page


def _found(store: Store, sql: str, where: Conditions, skipped: int, most: int) -> _Found:
    parameters: dict[str, Any] = {**where.parameters, "skipped": skipped, "most": most}
    ((total, tokens, newest),) = store.query(sql.replace("WANTED", str(where)), parameters).rows
    return _Found(total, frozenset(tokens), newest)


def _where(time_range: TimeRange, scope: TenantScope, wanted: ReuseFilter) -> Conditions:
    where = Conditions()
    where.during(time_range)
    where.within(scope)
    for name in ("tenant", "tool", "principal"):
        where.equal(name, getattr(wanted, name))
    if wanted.strict_replays_only:
        where.add("event_type = 'replayed'")
    return where


def _claimed(store: Store, time_range: TimeRange, scope: TenantScope, wanted: ReuseFilter) -> int:
    where = Conditions()
    where.add("nonce_trust = 'claimed'")
    where.during(time_range)
    where.within(scope)
    for name in ("tenant", "tool", "principal"):
        where.equal(name, getattr(wanted, name))
    count = store.query(
        f"SELECT uniqExact(event_id) FROM events WHERE {where}",  # noqa: S608
        where.parameters,
    ).scalar()
    return int(count)
