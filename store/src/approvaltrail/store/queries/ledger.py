"""What became of every nonce that was issued, and when the ledger could not be asked.

Each distinct nonce issued in the range has exactly one fate, so the fates add up to the issued ones
whatever was stored twice. What cannot be told is a fate of its own, never left out.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from approvaltrail.schemas.events import Reason
from approvaltrail.store.answers import Fate, LedgerBalance, LedgerClaims, LedgerOutage
from approvaltrail.store.queries.conditions import (
    INSTANT,
    Conditions,
    check_page,
    events_by_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from typing import Any

    from approvaltrail.store.answers import StoredEvent, TenantScope, TimeRange
    from approvaltrail.store.connection import Store

OUTAGE_REASONS: Final = (Reason.LEDGER_UNAVAILABLE, Reason.LEDGER_FULL)
"""Refusals that say: the ledger could not be asked, or could take nothing more."""
BALANCED: Final = tuple(fate for fate in Fate if fate is not Fate.ACCEPTED_UNISSUED)
"""The fates that add up to the nonces issued."""
_APART: Final = timedelta(minutes=5)
"""Refusals further apart than this belong to two outages."""
_MOST_MINUTES: Final = 20_000

_FATES: Final = """
WITH
  issued AS (
    SELECT sipHash64(assumeNotNull(nonce)) AS nonce_hash, max(expires_at) AS until,
      min((occurred_at, event_id)) AS key
    FROM events WHERE event_type = 'issued' AND isNotNull(nonce) AND WANTED
    GROUP BY nonce_hash
  ),
  accepted AS (
    SELECT DISTINCT nonce_hash FROM nonce_trail
    WHERE accepted AND nonce_hash IN (SELECT nonce_hash FROM issued) AND MINE
  ),
  found_spent AS (
    SELECT DISTINCT nonce_hash FROM turned_down
    WHERE known_spent AND occurred_at >= {start:INSTANT} - INTERVAL 1 HOUR AND MINE
  )
SELECT multiIf(nonce_hash IN (SELECT nonce_hash FROM accepted), 'accepted',
    nonce_hash IN (SELECT nonce_hash FROM found_spent), 'spent_unrecorded',
    isNull(until), 'expiry_unknown', until <= {now:INSTANT}, 'expired', 'outstanding') AS fate,
  AND_WHAT
FROM issued
""".replace(":INSTANT}", f":{INSTANT}}}")
"""Nothing is presented before it is issued, but for clocks that differ by less than the hour."""
_COUNTED: Final = _FATES.replace("AND_WHAT", "count()") + "GROUP BY fate"
_LISTED: Final = _FATES.replace("AND_WHAT", "key.1, key.2") + (
    "WHERE fate = {fate:String} ORDER BY key DESC LIMIT {limit:UInt32} OFFSET {offset:UInt32}"
)
_UNISSUED: Final = """
WITH
  doubtful AS (
    SELECT sipHash64(assumeNotNull(nonce)) AS nonce_hash,
      minIf((occurred_at, event_id), event_type = 'accepted' AND WANTED) AS key
    FROM events
    WHERE event_type IN ('issued', 'accepted') AND isNotNull(nonce)
      AND occurred_at >= {start:INSTANT} - INTERVAL 1 DAY AND occurred_at < {end:INSTANT}
    GROUP BY nonce_hash
    HAVING countIf(event_type = 'issued') = 0 AND countIf(event_type = 'accepted' AND WANTED) > 0
  ),
  unissued AS (
    SELECT key FROM doubtful WHERE nonce_hash NOT IN (
      SELECT nonce_hash FROM nonce_trail WHERE NOT accepted AND event_type = 'issued'
        AND nonce_hash IN (SELECT nonce_hash FROM doubtful))
  )
""".replace(":INSTANT}", f":{INSTANT}}}")
"""Nearly all issuances lie within a day; only what is left is looked for in the whole record."""
_COUNT_UNISSUED: Final = "SELECT count() FROM unissued"
_LIST_UNISSUED: Final = (
    "SELECT key.1, key.2 FROM unissued ORDER BY key DESC "
    "LIMIT {limit:UInt32} OFFSET {offset:UInt32}"
)


def ledger_balance(
    store: Store, time_range: TimeRange, scope: TenantScope, now: datetime
) -> LedgerBalance:
    """Reconcile the nonces issued in a range with what became of them by `now`."""
    where, mine = _conditions(time_range, scope)
    counted = store.query(
        _COUNTED.replace("WANTED", str(where)).replace("MINE", str(mine)),
        {**where.parameters, "now": now},
    )
    fates: dict[str, int] = dict(counted.rows)
    unissued = store.query(
        (_UNISSUED + _COUNT_UNISSUED).replace("WANTED", str(where)), where.parameters
    ).scalar()
    return LedgerBalance(
        fates={fate: fates.get(fate.value, 0) for fate in BALANCED}, accepted_unissued=unissued
    )


def ledger_claims(store: Store, time_range: TimeRange, scope: TenantScope) -> LedgerClaims:
    """Count the acceptances of a range by whether they spent their nonce in the ledger."""
    where, _ = _conditions(time_range, scope)
    ((spent, unledgered),) = store.query(
        "SELECT uniqExactIf(event_id, ledgered), uniqExactIf(event_id, NOT ledgered) "  # noqa: S608
        f"FROM events WHERE event_type = 'accepted' AND {where}",
        where.parameters,
    ).rows
    return LedgerClaims(
        claims=spent, unledgered_acceptances=unledgered, last_claim_at=_last_claim(store, scope)
    )


def ledger_nonces(
    store: Store,
    time_range: TimeRange,
    scope: TenantScope,
    now: datetime,
    fate: Fate,
    limit: int,
    offset: int,
) -> tuple[StoredEvent, ...]:
    """Return the nonces of one fate, newest first, each by its issuance.

    Those of which no issuance is stored come by their acceptance.
    """
    check_page(limit, offset)
    where, mine = _conditions(time_range, scope)
    sql = _UNISSUED + _LIST_UNISSUED if fate is Fate.ACCEPTED_UNISSUED else _LISTED
    page = {"now": now, "fate": fate.value, "limit": limit, "offset": offset}
    rows = store.query(
        sql.replace("WANTED", str(where)).replace("MINE", str(mine)), {**where.parameters, **page}
    ).rows
    keys = [(row[-2], row[-1]) for row in rows]
    found = events_by_key(store, keys, scope)
    return tuple(found[key] for key in keys if key in found)


def _conditions(time_range: TimeRange, scope: TenantScope) -> tuple[Conditions, Conditions]:
    """Return what holds events to the range and scope, and other tables to the scope."""
    where, mine = Conditions(), Conditions()
    where.during(time_range)
    for conditions in (where, mine):
        conditions.within(scope)
    return where, mine


def ledger_outages(
    store: Store, time_range: TimeRange, scope: TenantScope
) -> tuple[LedgerOutage, ...]:
    """Return the times during which a server refused for want of its ledger, newest first."""
    where = Conditions()
    where.during(time_range)
    where.within(scope)
    reasons = ", ".join(f"'{reason.value}'" for reason in OUTAGE_REASONS)
    rows = store.query(
        "SELECT service, instance, assumeNotNull(reason) AS cause, min(occurred_at) AS first, "  # noqa: S608
        "max(occurred_at) AS last, uniqExact(event_id) AS refusals "
        f"FROM events WHERE event_type = 'refused' AND reason IN ({reasons}) AND {where} "
        "GROUP BY service, instance, cause, toStartOfMinute(occurred_at) "
        "ORDER BY service, instance, cause, first LIMIT {most:UInt32}",
        {**where.parameters, "most": _MOST_MINUTES},
    )
    found = _joined(rows.rows)
    return tuple(sorted(found, key=lambda outage: outage.last, reverse=True))


def _joined(minutes: Iterable[Any]) -> list[LedgerOutage]:
    outages: list[LedgerOutage] = []
    for service, instance, cause, first, last, refusals in minutes:
        before = outages[-1] if outages else None
        whose = (service, instance, Reason(cause))
        if (
            before is not None
            and (before.service, before.instance, before.reason) == whose
            and first - before.last <= _APART
        ):
            outages.pop()
            first, refusals = before.first, refusals + before.refusals  # noqa: PLW2901
        outages.append(
            LedgerOutage(
                service=service,
                instance=instance,
                reason=whose[2],
                first=first,
                last=last,
                refusals=refusals,
            )
        )
    return outages


def _last_claim(store: Store, scope: TenantScope) -> datetime | None:
    where = Conditions()
    where.within(scope)
    rows = store.query(
        f"SELECT occurred_at FROM events WHERE event_type = 'accepted' AND ledgered AND {where} "  # noqa: S608
        "ORDER BY occurred_at DESC LIMIT 1",
        where.parameters,
    ).rows
    return next((at for (at,) in rows), None)
