"""Reuses presented in a range, newest first, exact.

Candidates come from two places. What was turned down is few rows, kept by time; a refusal among
them is a reuse when its nonce had been accepted before, which `nonce_trail` knows. A second
acceptance can only come within its token's life, so the acceptances since the oldest issuance of
any token accepted in the range hold the first one too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from approvaltrail.store.answers import ReuseFilter, ReusePage
from approvaltrail.store.queries.assembly import keys_of, reuse_of
from approvaltrail.store.queries.conditions import Conditions, check_page, events_by_key
from approvaltrail.store.queries.linking import links_of_hashes

if TYPE_CHECKING:
    from approvaltrail.store.answers import TenantScope, TimeRange
    from approvaltrail.store.connection import Store

_REUSES: Final = """
WITH
  candidates AS (
    SELECT occurred_at, event_id, nonce_hash, known_spent FROM turned_down FINAL WHERE WANTED
  ),
  accepted_before AS (
    SELECT nonce_hash, min((occurred_at, event_id)) AS first FROM nonce_trail
    WHERE accepted AND nonce_hash IN (SELECT nonce_hash FROM candidates WHERE NOT known_spent)
    GROUP BY nonce_hash
  ),
  late AS (
    SELECT occurred_at, event_id, candidates.nonce_hash AS nonce_hash
    FROM candidates LEFT JOIN accepted_before ON candidates.nonce_hash = accepted_before.nonce_hash
    WHERE known_spent OR (accepted_before.nonce_hash != 0 AND (occurred_at, event_id) > first)
  )"""
# Servers' clocks may be five minutes apart; an acceptance that does not say when its token was
# issued is taken for one of a token that lived a day. Where nothing was accepted in the range,
# nothing was accepted again, and the least of nothing must not be 1970.
_ACCEPTED_AGAIN: Final = """,
  (
    SELECT ifNull(
      minOrNull(least(ifNull(issued_at, occurred_at - INTERVAL 1 DAY), occurred_at)),
      {end:DateTime64(6, 'UTC')}) - INTERVAL 5 MINUTE
    FROM events
    WHERE event_type = 'accepted' AND DURING
  ) AS oldest,
  doubled AS (
    SELECT sipHash64(assumeNotNull(nonce)) AS nonce_hash FROM events
    WHERE event_type = 'accepted' AND nonce_trust = 'verified' AND isNotNull(nonce)
      AND occurred_at >= oldest AND occurred_at < {end:DateTime64(6, 'UTC')}
    GROUP BY nonce_hash HAVING min(event_id) != max(event_id)
  ),
  acceptances AS (
    SELECT nonce_hash, arraySort(groupUniqArray((occurred_at, event_id))) AS keys FROM nonce_trail
    WHERE accepted AND nonce_hash IN (SELECT nonce_hash FROM doubled)
    GROUP BY nonce_hash
  ),
  again AS (
    SELECT key.1 AS occurred_at, key.2 AS event_id, nonce_hash
    FROM acceptances ARRAY JOIN arraySlice(keys, 2) AS key
  )"""
_PAGE: Final = """
SELECT count() AS total, uniqExact(nonce_hash) AS tokens,
  arraySlice(arrayReverseSort(groupArray((occurred_at, event_id, nonce_hash))),
    {offset:UInt32} + 1, {limit:UInt32}) AS page
FROM (
"""
_LATE_ROWS: Final = "SELECT occurred_at, event_id, nonce_hash FROM late"
_AGAIN_ROWS: Final = """
  UNION ALL
  SELECT occurred_at, event_id, sipHash64(assumeNotNull(nonce)) AS nonce_hash FROM events
  WHERE (occurred_at, event_id) IN (SELECT occurred_at, event_id FROM again) AND WANTED
  LIMIT 1 BY occurred_at, event_id
"""


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
    where = _where(time_range, scope, wanted)
    again = not wanted.strict_replays_only
    sql = _REUSES + (_ACCEPTED_AGAIN if again else "")
    sql += _PAGE + _LATE_ROWS + (_AGAIN_ROWS if again else "") + ")"
    during = Conditions()
    during.during(time_range)
    rows, claimed = store.together(
        lambda: (
            store.query(
                sql.replace("WANTED", str(where)).replace("DURING", str(during)),
                {**where.parameters, "limit": limit, "offset": offset},
            ).rows
        ),
        lambda: _claimed(store, time_range, scope, wanted),
    )
    ((total, tokens, page),) = rows
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
