"""Labels of reuses, the same here as on the pages, by whatever way a reuse was found.

A label counts what else its caller reused around it, so that is read too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Final

from approvaltrail.dashboard.export.labelled import LabelledReuses, labelled
from approvaltrail.dashboard.settings import DashboardSettings
from approvaltrail.local.cli.asked import Asking
from approvaltrail.store.answers import Reuse, ReuseFilter, TimeRange
from approvaltrail.store.labels import (
    Label,
    LabelKind,
    LabelThresholds,
    caller_of,
    label_of,
    recent_nonces,
)

Labelled = tuple[Reuse, Label]
_PAGE: Final = 500
_AROUND: Final = 1000
"""Reuses around that are looked at: a caller with more needs review for that alone."""
_STEP: Final = timedelta(microseconds=1)


def thresholds() -> LabelThresholds:
    """Return where a retry ends, by the dashboard's settings."""
    # The address is asked for elsewhere; here it only fills the place of one that must be given.
    given = {"clickhouse_dsn": "http://localhost/unused"}
    return DashboardSettings.from_environment(**given).label_thresholds()


def label_all(asking: Asking, reuses: Sequence[Reuse]) -> list[Labelled]:
    """Label these reuses in the light of what their callers did around them."""
    limits = thresholds()
    among = [*reuses, *_around(asking, reuses, limits)]
    return [(one, label_of(one, limits, recent_nonces(one, among, limits))) for one in reuses]


def with_label(
    asking: Asking, time_range: TimeRange, wanted: ReuseFilter, kind: LabelKind, limit: int
) -> list[Labelled]:
    """Return the newest reuses of a range and filter that have a label."""
    limits = thresholds()
    asked = LabelledReuses(wanted=wanted, label=kind, limits=limits)
    window = limits.caller_window
    wider = TimeRange(time_range.start - window, time_range.end + window)
    found = (
        (one, label)
        for one, label in labelled(_walk(asking, wider, asked.around()), limits)
        if time_range.start <= one.presentation.event.occurred_at < time_range.end
        and asked.takes(one, label)
    )
    return list(itertools.islice(found, limit))


def _walk(asking: Asking, time_range: TimeRange, wanted: ReuseFilter) -> Iterator[Reuse]:
    """Read all reuses, newest first; one that moves down meanwhile is left out the second time."""
    seen: set[str] = set()
    for offset in itertools.count(0, _PAGE):
        page = asking.queries.reuses(time_range, asking.scope, wanted, _PAGE, offset)
        for one in page.reuses:
            if one.presentation.event.event_id not in seen:
                seen.add(one.presentation.event.event_id)
                yield one
        if len(page.reuses) < _PAGE:
            return


def _around(asking: Asking, reuses: Sequence[Reuse], limits: LabelThresholds) -> Iterable[Reuse]:
    known = [one for one in reuses if caller_of(one.presentation.event) is not None]
    if not known:
        return ()
    moments = [one.presentation.event.occurred_at for one in known]
    window = limits.caller_window
    principals = {one.presentation.event.principal for one in known}
    wanted = ReuseFilter(principal=principals.pop() if len(principals) == 1 else None)
    spans = [TimeRange(min(moments) - window, max(moments) + window + _STEP)]
    if max(moments) - min(moments) > 4 * window and len(moments) <= 10:  # noqa: PLR2004 - few, far apart
        spans = [TimeRange(at - window, at + window + _STEP) for at in moments]
    return [
        one
        for time_range in spans
        for one in asking.queries.reuses(time_range, asking.scope, wanted, _AROUND, 0).reuses
    ]
