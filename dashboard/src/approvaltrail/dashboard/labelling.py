"""Labels, the same for a reuse wherever it is shown.

A label counts what else its caller reused around it, so what lies around is looked up, whatever
page, filter or range the reuse was found by.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from approvaltrail.dashboard import formats, reuse_table
from approvaltrail.dashboard.desk import Desk
from approvaltrail.store.answers import Reuse, ReuseFilter, TimeRange
from approvaltrail.store.labels import Label, LabelKind, caller_of, label_of

_AROUND: Final = 300
"""Reuses around that are looked at; a caller with more needs review for that alone."""
_MOST_CALLERS: Final = 4
"""For more callers than this, all that lies around is looked at instead of each one's own."""


Labelled = list[tuple[Reuse, Label | None]]
"""Reuses with their labels; None where the label is not known yet."""


def by_themselves(desk: Desk, reuses: Sequence[Reuse]) -> Labelled:
    """Label reuses by what they hold alone, where nothing around them could change the label.

    What else a caller did only ever adds a reason for review.
    """
    limits = desk.settings.label_thresholds()
    found = [(one, label_of(one, limits, 1)) for one in reuses]
    return [
        (one, label if label.kind is LabelKind.NEEDS_REVIEW or not _known(one) else None)
        for one, label in found
    ]


def labelled_page(desk: Desk, reuses: Sequence[Reuse], *, newest: bool) -> Labelled:
    """Label reuses that no filter narrowed, none left out between the first and the last.

    Only what lies beyond their two ends is looked up. `newest` says that none comes after them.
    """
    if not reuses:
        return []
    window, moments = _window(desk), _moments(reuses)
    start, end = min(moments), max(moments) + formats.INSTANT_STEP
    beyond = [TimeRange(start - window, start)]
    if not newest:
        beyond.append(TimeRange(end, end + window))
    others = [one for span in beyond for one in _reuses(desk, span, ReuseFilter())]
    return _labelled(desk, reuses, [*reuses, *others])


def labelled(desk: Desk, reuses: Sequence[Reuse]) -> Labelled:
    """Label any reuses, in the light of what else their callers reused around them."""
    callers: defaultdict[str | None, list[Reuse]] = defaultdict(list)
    for one in filter(_known, reuses):
        callers[one.presentation.event.principal].append(one)
    if len(callers) > _MOST_CALLERS:
        callers = defaultdict(list, {None: list(filter(_known, reuses))})
    others: list[Reuse] = []
    for principal, own in callers.items():
        span, wanted = _around(own, _window(desk)), ReuseFilter(principal=principal)
        if desk.everything.reuses(span, wanted, 1).tokens > len(_nonces(own)):
            others += _reuses(desk, span, wanted)
    return _labelled(desk, reuses, [*reuses, *others])


def _labelled(desk: Desk, reuses: Sequence[Reuse], among: Iterable[Reuse]) -> Labelled:
    return [*reuse_table.labelled(reuses, desk.settings.label_thresholds(), among)]


def _known(reuse: Reuse) -> bool:
    """Whether anybody is known to have presented it, so that what else they did can be found."""
    return caller_of(reuse.presentation.event) is not None


def _nonces(reuses: Iterable[Reuse]) -> set[str | None]:
    return {one.presentation.event.nonce for one in reuses}


def _reuses(desk: Desk, span: TimeRange, wanted: ReuseFilter) -> tuple[Reuse, ...]:
    return desk.everything.reuses(span, wanted, _AROUND).reuses


def _around(reuses: Sequence[Reuse], window: timedelta) -> TimeRange:
    moments = _moments(reuses)
    return TimeRange(min(moments) - window, max(moments) + window + formats.INSTANT_STEP)


def _moments(reuses: Sequence[Reuse]) -> list[datetime]:
    return [one.presentation.event.occurred_at for one in reuses]


def _window(desk: Desk) -> timedelta:
    return desk.settings.label_thresholds().caller_window
