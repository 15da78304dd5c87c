"""The named queries: every question that pages and the command line ask of the store.

Each takes the viewer's `TenantScope`, sends values as server-side parameters only, and counts each
event once, whatever was sent or inserted twice.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from approvaltrail.store.queries.arrivals import arrivals
from approvaltrail.store.queries.completeness import Bounds, completeness
from approvaltrail.store.queries.dead_letters import dead_letters
from approvaltrail.store.queries.events import events
from approvaltrail.store.queries.histogram import histogram, ranking
from approvaltrail.store.queries.ledger import (
    ledger_balance,
    ledger_claims,
    ledger_nonces,
    ledger_outages,
)
from approvaltrail.store.queries.neighbours import neighbours
from approvaltrail.store.queries.overview import overview
from approvaltrail.store.queries.reuses import reuses
from approvaltrail.store.queries.tenants import tenants
from approvaltrail.store.queries.trail import trail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from approvaltrail.store.answers import (
        Arrivals,
        Completeness,
        DeadLetter,
        EventFilter,
        EventPage,
        Fate,
        Histogram,
        LedgerBalance,
        LedgerClaims,
        LedgerOutage,
        Overview,
        Ranked,
        ReuseFilter,
        ReusePage,
        StoredEvent,
        TenantScope,
        TimeRange,
        Trail,
    )
    from approvaltrail.store.connection import Store

__all__ = ["Bounds", "Queries"]


class Queries:
    """The questions, bound to one store.

    Raises from every method:
        StoreError: the store could not answer.
        ValueError: a zone-less time, or a page beyond its bounds.
    """

    def __init__(
        self,
        store: Store,
        *,
        bounds: Bounds | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._store = store
        self._bounds = bounds or Bounds()
        self._clock = clock or _now

    def trail(self, nonce: str, scope: TenantScope) -> Trail:
        """Everything known of one nonce, with what lacks and why."""
        return trail(self._store, nonce, scope, lambda: self.completeness(scope, self._clock()))

    def reuses(
        self,
        time_range: TimeRange,
        scope: TenantScope,
        filter: ReuseFilter | None = None,  # noqa: A002 - the word that callers read
        limit: int = 100,
        offset: int = 0,
    ) -> ReusePage:
        """Reuses presented in a range, newest first; at most 1,000 at once."""
        return reuses(self._store, time_range, scope, filter, limit, offset)

    def overview(self, time_range: TimeRange, scope: TenantScope) -> Overview:
        """Return counts of a range beside those of the period before."""
        return overview(self._store, time_range, scope)

    def events(
        self,
        time_range: TimeRange,
        scope: TenantScope,
        filter: EventFilter | None = None,  # noqa: A002 - the word that callers read
        limit: int = 100,
        offset: int = 0,
    ) -> EventPage:
        """Events of a range, newest first; at most 1,000 at once."""
        return events(self._store, time_range, scope, filter, limit, offset)

    def completeness(
        self, scope: TenantScope, now: datetime, expected: int | None = None
    ) -> Completeness:
        """Whether what is stored is all there is; `expected` counts producers that must report."""
        return completeness(self._store, scope, now, expected, self._bounds)

    def dead_letters(self, scope: TenantScope, limit: int = 100) -> tuple[DeadLetter, ...]:
        """Messages that could not be stored, newest first; none for a viewer of one tenant."""
        return dead_letters(self._store, scope, limit)

    def neighbours(
        self,
        stored_event: StoredEvent,
        scope: TenantScope,
        *,
        around: timedelta = timedelta(hours=24),
        limit: int = 100,
    ) -> tuple[StoredEvent, ...]:
        """Return what else the same caller did in the tenant around an event, oldest first."""
        return neighbours(self._store, stored_event, scope, around, limit)

    def histogram(
        self,
        time_range: TimeRange,
        scope: TenantScope,
        filter: EventFilter | None = None,  # noqa: A002 - the word that callers read
    ) -> Histogram:
        """Return how the events of a filter spread over a range."""
        return histogram(self._store, time_range, scope, filter)

    def ranking(
        self,
        time_range: TimeRange,
        scope: TenantScope,
        filter: EventFilter | None,  # noqa: A002 - the word that callers read
        fields: Sequence[str],
    ) -> dict[str, tuple[Ranked, ...]]:
        """Return the most frequent values of fields among the events of a filter."""
        return ranking(self._store, time_range, scope, filter, fields)

    def ledger_balance(
        self, time_range: TimeRange, scope: TenantScope, now: datetime
    ) -> LedgerBalance:
        """Reconcile the nonces issued in a range with what became of them."""
        return ledger_balance(self._store, time_range, scope, now)

    def ledger_claims(self, time_range: TimeRange, scope: TenantScope) -> LedgerClaims:
        """Count the acceptances of a range that spent their nonce, and name the latest."""
        return ledger_claims(self._store, time_range, scope)

    def ledger_nonces(
        self,
        time_range: TimeRange,
        scope: TenantScope,
        now: datetime,
        fate: Fate,
        limit: int = 100,
        offset: int = 0,
    ) -> tuple[StoredEvent, ...]:
        """Return the nonces of one fate, newest first; at most 1,000 at once."""
        return ledger_nonces(self._store, time_range, scope, now, fate, limit, offset)

    def ledger_outages(self, time_range: TimeRange, scope: TenantScope) -> tuple[LedgerOutage, ...]:
        """Return the times in which servers refused for want of their ledger, newest first."""
        return ledger_outages(self._store, time_range, scope)

    def arrivals(self, scope: TenantScope, now: datetime) -> Arrivals:
        """Return how the sink is doing, as far as what it stored can tell."""
        return arrivals(self._store, scope, now)

    def tenants(self, time_range: TimeRange, scope: TenantScope) -> tuple[str, ...]:
        """Return the tenants that events of a range name, in order."""
        return tenants(self._store, time_range, scope)


def _now() -> datetime:
    return datetime.now(UTC)
