"""A trail on one axis: the token's life as a bar, what happened as marks.

Time runs from the first event. Where gaps span decades (seconds beside days) the scale is
logarithmic, and the axis says so; marks that would cover one another become one with a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from approvaltrail.dashboard import formats, palette, words, zone
from approvaltrail.dashboard.markup import Markup, element, joined
from approvaltrail.schemas.events import EventType
from approvaltrail.store.answers import StoredEvent, Trail

_DECADES: Final = 100
"""Gaps that differ by more than this factor ask for a logarithmic scale."""
_SECOND: Final = timedelta(seconds=1)
_SHORTEST: Final = timedelta(milliseconds=100)
_APART: Final = 2.6
"""Percent of the axis below which two marks become one."""
_INSET: Final = 1.0
"""Percent kept free at both ends, so that no mark is cut."""
_TICKS_APART: Final = 9.0
_TICKS: Final = tuple(
    timedelta(seconds=one)
    for one in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 10_800, 21_600)
) + tuple(timedelta(hours=one) for one in (12, 24, 48, 96, 168, 336, 720, 2_160, 4_320, 8_760))
_RANK: Final = (
    EventType.ISSUED,
    EventType.COMPLETED,
    EventType.ACCEPTED,
    EventType.REFUSED,
    EventType.REPLAYED,
)
"""Which of several marks in one place is shown: the last of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One event on the axis."""

    at: datetime
    kind: EventType
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where an instant stands, in percent."""

    start: datetime
    end: datetime
    unit: timedelta
    """The gap with which a logarithmic scale begins; zero: the scale is linear."""

    @classmethod
    def of(cls, instants: Sequence[datetime], until: datetime | None) -> Scale:
        """Choose the scale for some instants, in order, and the end of the token's life."""
        start = instants[0]
        end = max(instants[-1], until or instants[-1])
        gaps = [later - one for one, later in pairwise(instants) if later - one >= _SHORTEST]
        wide = bool(gaps) and max(gaps) > min(gaps) * _DECADES
        unit = max(min(gaps), _SECOND) if wide else timedelta(0)
        return cls(start=start, end=max(end, start + _SECOND), unit=unit)

    @property
    def is_logarithmic(self) -> bool:
        """Whether equal distances are equal factors."""
        return self.unit > timedelta(0)

    def place(self, moment: datetime) -> float:
        """Return where an instant stands."""
        since, whole = max(moment - self.start, timedelta(0)), self.end - self.start
        part = since / whole
        if self.is_logarithmic:
            part = math.log1p(since / self.unit) / math.log1p(whole / self.unit)
        return _INSET + (100 - 2 * _INSET) * min(1.0, part)

    def ticks(self) -> Iterable[tuple[float, timedelta]]:
        """Return round times since the start that have room beside one another."""
        last = -_TICKS_APART
        for since in (timedelta(0), *_TICKS):
            if since > self.end - self.start:
                return
            place = self.place(self.start + since)
            if place - last >= _TICKS_APART:
                yield place, since
                last = place


def build(trail: Trail) -> Markup:
    """Build the axis, or nothing where there is one event alone."""
    marks = sorted(_marks(trail), key=lambda mark: mark.at)
    life = _life(trail)
    if len(marks) < 2:  # noqa: PLR2004 - one event has no distance to another
        return joined()
    scale = Scale.of([mark.at for mark in marks], life[1] if life else None)
    shown = [_mark(group, scale) for group in _groups(marks, scale)]
    ticks = [
        element("span", formats.gap(since) if since else "0", style=f"left:{place:.2f}%")
        for place, since in scale.ticks()
    ]
    kind = "logarithmic" if scale.is_logarithmic else "linear"
    name = element("div", f"time since {marks[0].kind.value}, {kind} scale", class_="at-axis-name")
    said = (
        f"{formats.counted(len(marks), 'event')} on a {kind} axis of time; the list below says each"
    )
    line = element("div", _life_bar(life, scale), *shown, class_="at-track")
    inside = (line, element("div", *ticks, class_="at-ticks"), name)
    return element("div", *inside, class_="at-axis", role="img", aria_label=said)


def _marks(trail: Trail) -> Iterable[Mark]:
    plain = [trail.issuance, trail.acceptance, *trail.completions, *trail.early_refusals]
    for stored in plain:
        if stored is not None:
            yield _of(stored, words.outcome(stored.event))
    for reuse in trail.reuses:
        said = words.outcome(reuse.presentation.event, reuse=True)
        yield _of(reuse.presentation, f"reuse {reuse.number}: {said}")


def _of(stored: StoredEvent, said: str) -> Mark:
    return Mark(at=stored.event.occurred_at, kind=stored.event.event_type, said=said)


def _life(trail: Trail) -> tuple[datetime, datetime] | None:
    """Return from when until when the token was valid, as any event of it says."""
    told = [trail.issuance, trail.acceptance, *(one.presentation for one in trail.reuses)]
    for stored in filter(None, told):
        event = stored.event
        start = event.issued_at or (
            event.occurred_at if event.event_type is EventType.ISSUED else None
        )
        if start is not None and event.expires_at is not None:
            return start, event.expires_at
    return None


def _life_bar(life: tuple[datetime, datetime] | None, scale: Scale) -> Markup | None:
    if life is None:
        return None
    left, right = scale.place(life[0]), scale.place(life[1])
    said = f"valid for {formats.gap(life[1] - life[0])}"
    return element(
        "span",
        element("span", said, class_="at-life-name"),
        class_="at-life",
        style=f"left:{left:.2f}%;width:{max(right - left, 0.2):.2f}%",
        title=f"the token was valid until {zone.both(life[1])}",
    )


def _groups(marks: Iterable[Mark], scale: Scale) -> list[list[Mark]]:
    groups: list[list[Mark]] = []
    for mark in marks:
        if groups and scale.place(mark.at) - scale.place(groups[-1][0].at) < _APART:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return groups


def _mark(group: Sequence[Mark], scale: Scale) -> Markup:
    rank: Callable[[Mark], int] = lambda mark: _RANK.index(mark.kind)  # noqa: E731
    sign = palette.sign_of(max(group, key=rank).kind)
    said = "\n".join(f"{mark.said} {formats.instant(mark.at)} UTC" for mark in group[:12])
    number = f"×{len(group)}" if len(group) > 1 else None
    badge = element("span", number, class_="at-times") if number else None
    return element(
        "span",
        element("span", sign.icon, class_=f"at-icon at-{sign.tone}"),
        badge,
        class_="at-mark",
        style=f"left:{scale.place(group[0].at):.2f}%",
        title=said,
    )
