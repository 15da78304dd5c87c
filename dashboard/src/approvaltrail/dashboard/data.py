"""Answers of the store, kept for a few seconds, each under the scope of whoever asked.

What is kept is shared by all who look, so scope and role are part of every key: the one method that
keeps puts them there, and no query can be asked without it. What a role may not see is taken out
before an answer is kept or shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, ParamSpec, cast

import streamlit as st

from approvaltrail.dashboard.access.masking import ADDRESS_FIELDS, masked_answer
from approvaltrail.dashboard.access.viewer import Role, Viewer
from approvaltrail.dashboard.asking import Asking, open_asking
from approvaltrail.dashboard.errors import AccessRefusedError
from approvaltrail.dashboard.settings import DashboardSettings
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
from approvaltrail.store.queries import Queries
from approvaltrail.store.queries.conditions import MAXIMUM_PAGE

KEPT_SECONDS: Final = 5.0
KEPT_LONGER_SECONDS: Final = 60.0
"""For what changes seldom and is no evidence: the names to choose a tenant from."""
Asked = ParamSpec("Asked")


@st.cache_resource(show_spinner=False)
def _opened(source: str, _settings: DashboardSettings) -> Asking:  # noqa: ARG001 - the key
    return open_asking(_settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The queries of one store within one scope, for one role."""

    asking: Asking
    scope: TenantScope
    role: Role
    mask_key: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, settings: DashboardSettings, viewer: Viewer, mask_key: bytes = b"") -> Answers:
        """Open the store that the settings name, once for all who look."""
        named = repr((settings.dsn(), settings.bounds()))
        source = hashlib.sha256(named.encode()).hexdigest()
        return cls(
            asking=_opened(source, settings),
            scope=viewer.scope,
            role=viewer.role,
            mask_key=mask_key,
        )

    @property
    def queries(self) -> Queries:
        """The queries themselves: nothing that they answer is kept or masked."""
        return self.asking.queries

    def soon(self, ask: Callable[Asked, object], *args: Asked.args, **named: Asked.kwargs) -> None:
        """Begin to ask, with a method of these answers, what will be wanted in a moment."""
        self.asking.soon(ask, *args, **named)

    def narrowed(self, tenant: str | None) -> Answers:
        """Return the same for one tenant, where the viewer may see all."""
        if tenant is None or self.scope.tenant is not None:
            return self
        return replace(self, scope=TenantScope.only(tenant))

    def trail(self, nonce: str) -> Trail:
        """Tell everything known of one nonce."""
        return cast("Trail", self._ask("trail", nonce, then=(self.scope,)))

    def reuses(
        self, time_range: TimeRange, wanted: ReuseFilter, limit: int, offset: int = 0
    ) -> ReusePage:
        """List the reuses of a range, newest first."""
        after = (self.scope, wanted, limit, offset)
        return cast("ReusePage", self._ask("reuses", time_range, then=after))

    def overview(self, time_range: TimeRange) -> Overview:
        """Count the events of a range."""
        return cast("Overview", self._ask("overview", time_range, then=(self.scope,)))

    def events(
        self, time_range: TimeRange, wanted: EventFilter, limit: int, offset: int = 0
    ) -> EventPage:
        """List the events of a range, newest first.

        Raises:
            AccessRefusedError: an address is asked for by a role that may not see any.
        """
        self._check(wanted)
        after = (self.scope, wanted, limit, offset)
        return cast("EventPage", self._ask("events", time_range, then=after))

    def histogram(self, time_range: TimeRange, wanted: EventFilter) -> Histogram:
        """Count the events of a filter over a range.

        Raises:
            AccessRefusedError: an address is asked for by a role that may not see any.
        """
        self._check(wanted)
        return cast("Histogram", self._ask("histogram", time_range, then=(self.scope, wanted)))

    def ranking(
        self, time_range: TimeRange, wanted: EventFilter, fields: tuple[str, ...]
    ) -> dict[str, tuple[Ranked, ...]]:
        """Rank the events of a filter by fields; addresses only for a role that may see them.

        Raises:
            AccessRefusedError: an address is asked for by a role that may not see any.
        """
        self._check(wanted)
        if self.role is not Role.INVESTIGATOR:
            fields = tuple(name for name in fields if name not in ADDRESS_FIELDS)
        found = self._ask("ranking", time_range, then=(self.scope, wanted, fields))
        return cast("dict[str, tuple[Ranked, ...]]", found)

    def ledger_balance(self, time_range: TimeRange, now: datetime) -> LedgerBalance:
        """Reconcile the nonces issued in a range; asked afresh when kept answers expire."""
        ask = lambda: self.queries.ledger_balance(time_range, self.scope, now)  # noqa: E731
        return cast("LedgerBalance", self._kept("ledger_balance", repr(time_range), ask))

    def ledger_claims(self, time_range: TimeRange) -> LedgerClaims:
        """Count the acceptances of a range that spent their nonce, and name the latest."""
        return cast("LedgerClaims", self._ask("ledger_claims", time_range, then=(self.scope,)))

    def ledger_nonces(
        self, time_range: TimeRange, now: datetime, fate: Fate, limit: int, offset: int
    ) -> tuple[StoredEvent, ...]:
        """List the nonces of one fate, newest first."""
        page = (fate, limit, offset)
        ask = lambda: self.queries.ledger_nonces(time_range, self.scope, now, *page)  # noqa: E731
        found = self._kept("ledger_nonces", repr((time_range, page)), ask)
        return cast("tuple[StoredEvent, ...]", found)

    def ledger_outages(self, time_range: TimeRange) -> tuple[LedgerOutage, ...]:
        """List the times in which servers refused for want of their ledger."""
        found = self._ask("ledger_outages", time_range, then=(self.scope,))
        return cast("tuple[LedgerOutage, ...]", found)

    def arrivals(self, now: datetime) -> Arrivals:
        """Say what the sink stored lately; asked afresh when kept answers expire."""
        ask = lambda: self.queries.arrivals(self.scope, now)  # noqa: E731
        return cast("Arrivals", self._kept("arrivals", "", ask))

    def tenants(self, time_range: TimeRange) -> tuple[str, ...]:
        """Name the tenants of a range, in whole hours, so that the names can be kept a while."""
        start = time_range.start.replace(minute=0, second=0, microsecond=0)
        end = time_range.end.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        hours = TimeRange(start, end)
        ask = lambda: self.queries.tenants(hours, self.scope)  # noqa: E731
        found = self._kept("tenants", repr(hours), ask, KEPT_LONGER_SECONDS)
        return cast("tuple[str, ...]", found)

    def completeness(self, now: datetime, expected: int | None) -> Completeness:
        """Say whether what is stored is all there is; asked afresh when kept answers expire."""
        ask = lambda: self.queries.completeness(self.scope, now, expected)  # noqa: E731
        # `now` differs on every run and is left out of the key: the answer says when it was asked.
        return cast("Completeness", self._kept("completeness", repr(expected), ask))

    def dead_letters(self, limit: int) -> tuple[DeadLetter, ...]:
        """List the latest dead letters."""
        found = self._ask("dead_letters", then=(self.scope, limit))
        return cast("tuple[DeadLetter, ...]", found)

    def neighbours(self, stored_event: StoredEvent) -> tuple[StoredEvent, ...]:
        """List what else the same caller did around an event, oldest first."""
        ask = lambda: self.queries.neighbours(self._whole(stored_event), self.scope)  # noqa: E731
        found = self._kept("neighbours", repr((stored_event, self.scope)), ask)
        return cast("tuple[StoredEvent, ...]", found)

    def _whole(self, stored: StoredEvent) -> StoredEvent:
        """Return an event as it is stored: a caller may be known by nothing but an address."""
        if self.role is Role.INVESTIGATOR:
            return stored
        at = stored.event.occurred_at
        moment = TimeRange(at, at + timedelta(microseconds=1))
        wanted = EventFilter(nonce=stored.event.nonce)
        found = self.queries.events(moment, self.scope, wanted, MAXIMUM_PAGE).events
        mine = (one for one in found if one.event.event_id == stored.event.event_id)
        return next(mine, stored)

    def _check(self, wanted: EventFilter) -> None:
        if wanted.address is not None and self.role is not Role.INVESTIGATOR:
            raise AccessRefusedError("addresses are masked for the role on-call, also in filters")

    def _ask(self, name: str, *first: Any, then: tuple[Any, ...]) -> Any:
        query = getattr(self.queries, name)
        key = repr((first, then))
        return self._kept(name, key, lambda: query(*first, *then))

    def _kept(
        self, name: str, key: str, ask: Callable[[], Any], seconds: float = KEPT_SECONDS
    ) -> Any:
        """Ask, or take what is kept for this scope and role; no caller can leave these out."""

        def masked() -> Any:
            return masked_answer(ask(), self.role, self.mask_key)

        whose = (self.scope, self.role, self.mask_key)
        return self.asking.kept.get((whose, name, key), seconds, masked)
