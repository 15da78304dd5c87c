"""Labels, the same for a reuse wherever it is shown.

A label counts what else its caller reused around it, so what lies around is looked up, whatever
page, filter or range the reuse was found by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from approvaltrail.dashboard import reuse_table
from approvaltrail.dashboard.desk import Desk
from approvaltrail.store.answers import Reuse, ReuseFilter, ReusePage, TimeRange
from approvaltrail.store.labels import Label

_AROUND: Final = 300
"""Reuses around that are looked at; a caller with more needs review for that alone."""


def labelled(
    desk: Desk, reuses: Sequence[Reuse], *, all_of: TimeRange | None = None
) -> list[tuple[Reuse, Label]]:
    """Label each reuse in the light of what else the same callers reused around it.

    `all_of` says that these are all reuses of a range: where it holds what lies around, nothing
    more is asked of the store.
    """
    if not reuses:
        return []
    thresholds = desk.settings.label_thresholds()
    moments = [one.presentation.event.occurred_at for one in reuses]
    window = thresholds.caller_window
    around = TimeRange(min(moments) - window, max(moments) + window)
    if all_of is not None and _holds(all_of, around, desk):
        return reuse_table.labelled(reuses, thresholds)
    others = desk.everything.reuses(around, ReuseFilter(), _AROUND).reuses
    return reuse_table.labelled(reuses, thresholds, [*reuses, *others])


def whole(desk: Desk, page: ReusePage) -> TimeRange | None:
    """Return the range of which a page that no filter narrowed holds every reuse, or None."""
    return desk.view.time_range if page.total == len(page.reuses) else None


def _holds(all_of: TimeRange, around: TimeRange, desk: Desk) -> bool:
    ends = all_of.end >= min(around.end, desk.view.now)  # nothing has happened yet after now
    return all_of.start <= around.start and ends
