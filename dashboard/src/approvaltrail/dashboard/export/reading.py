"""Reads the events or reuses of a filter, a page at a time, newest first, each event once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from approvaltrail.dashboard.errors import StoreMovedError, TooManyRowsError
from approvaltrail.dashboard.export.labelled import LabelledReuses, labelled
from approvaltrail.store.answers import (
    EventFilter,
    Reuse,
    ReuseFilter,
    StoredEvent,
    TenantScope,
    TimeRange,
)
from approvaltrail.store.queries import Queries
from approvaltrail.store.queries.conditions import MAXIMUM_PAGE

DEFAULT_ROWS: Final = 100_000
ROWS_SETTING: Final = "APPROVALTRAIL_EXPORT_ROWS"
_MOMENT: Final = timedelta(microseconds=1)
Page = tuple[list[StoredEvent], int]
"""Some events, and how many there are in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What to read."""

    queries: Queries
    time_range: TimeRange
    scope: TenantScope
    wanted: EventFilter | ReuseFilter | LabelledReuses
    """A filter of events, or one of reuses: then their presentations are read."""
    maximum_rows: int = DEFAULT_ROWS

    def __iter__(self) -> Iterator[StoredEvent]:
        """Read; holds one page at a time.

        Raises:
            TooManyRowsError: there are more than the cap, known before the first is given.
            StoreMovedError: fewer could be read than were counted.
            StoreError: the store did not answer.
        """
        counted, given = None, 0
        match self.wanted:
            case ReuseFilter() as reuses:
                pages = self._reuse_pages(reuses)
            case LabelledReuses() as labelled_reuses:
                pages = self._labelled_pages(labelled_reuses)
            case EventFilter() as events:
                pages = self._event_pages(events)
        for page, total in pages:
            if counted is None:
                counted = total
                self._check(total)
            given += len(page)
            self._check(given)
            yield from page
        if given < (counted or 0):
            raise StoreMovedError(
                f"{counted:,} events were counted and {given:,} could be read; export again"
            )

    def _event_pages(self, wanted: EventFilter) -> Iterator[Page]:
        """Walk back in time: each page ends where the one before began, at the same instant.

        Events of that instant come again and are left out; only where a whole page is of one
        instant is it walked by offset.
        """
        end, offset = self.time_range.end, 0
        seen: set[str] = set()
        while True:
            span = TimeRange(self.time_range.start, end)
            page = self.queries.events(span, self.scope, wanted, MAXIMUM_PAGE, offset)
            fresh = [one for one in page.events if one.event.event_id not in seen]
            yield fresh, page.total
            if offset + MAXIMUM_PAGE >= page.total or not page.events:
                return
            last = page.events[-1].event.occurred_at
            if last + _MOMENT == end:
                offset += MAXIMUM_PAGE
                seen |= {one.event.event_id for one in fresh}
            else:
                end, offset = last + _MOMENT, 0
                seen = {one.event.event_id for one in fresh if one.event.occurred_at == last}

    def _reuse_pages(self, wanted: ReuseFilter) -> Iterator[Page]:
        for reuses, total in self._reuses(self.time_range, wanted):
            yield [one.presentation for one in reuses], total

    def _labelled_pages(self, wanted: LabelledReuses) -> Iterator[Page]:
        """Walk all that their callers reused, also just outside of the range, and label it."""
        start, end = self.time_range.start, self.time_range.end
        window = wanted.limits.caller_window
        walked = self._reuses(TimeRange(start - window, end + window), wanted.around())
        for one, label in labelled(self._checked(walked), wanted.limits):
            if start <= one.presentation.event.occurred_at < end and wanted.takes(one, label):
                yield [one.presentation], 0

    def _checked(self, pages: Iterator[tuple[list[Reuse], int]]) -> Iterator[Reuse]:
        """Give the reuses of pages; more than the cap are not looked through either."""
        for reuses, total in pages:
            self._check(total)
            yield from reuses

    def _reuses(self, span: TimeRange, wanted: ReuseFilter) -> Iterator[tuple[list[Reuse], int]]:
        """Walk the list of reuses; one that moves down meanwhile is left out the second time."""
        seen: set[str] = set()
        for offset in range(0, self.maximum_rows + MAXIMUM_PAGE, MAXIMUM_PAGE):
            page = self.queries.reuses(span, self.scope, wanted, MAXIMUM_PAGE, offset)
            fresh = [one for one in page.reuses if _id(one) not in seen]
            seen |= {_id(one) for one in fresh}
            yield fresh, page.total
            if offset + MAXIMUM_PAGE >= page.total:
                return

    def _check(self, rows: int) -> None:
        if rows > self.maximum_rows:
            raise TooManyRowsError(
                f"there are {rows:,} events, and an export holds at most {self.maximum_rows:,} "
                f"({ROWS_SETTING}); narrow the range or the filter"
            )


def _id(reuse: Reuse) -> str:
    return reuse.presentation.event.event_id
