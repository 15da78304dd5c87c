"""Columns over time, as plain HTML: the axis is UTC, whatever the browser's zone.

Every column is a link to its own span of time, and holds its own words; colours come from the style
sheet, and the legend beside names each with a word. A script may add dragging over several columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from approvaltrail.dashboard import formats
from approvaltrail.dashboard.markup import Child, Markup, element
from approvaltrail.store.answers import TimeRange

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_TICKS: Final = 9
_DAY: Final = timedelta(days=1)
_STEPS: Final = (
    *(timedelta(minutes=one) for one in (1, 5, 15, 30)),
    *(timedelta(hours=one) for one in (1, 3, 6, 12)),
    *(timedelta(days=one) for one in (1, 2, 7, 14, 30, 90, 365)),
)
_HALF: Final = 50.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One kind of what is counted: its name, its colour's class, and counts by bucket."""

    word: str
    tone: str
    counts: dict[datetime, int]


def columns(
    name: str,
    layers: Sequence[Layer],
    bucket: timedelta,
    time_range: TimeRange,
    zoom: Callable[[datetime, datetime], str],
) -> Markup:
    """Build stacked columns, one a bucket. `zoom` gives the link to a span of time."""
    spans = list(_buckets(bucket, time_range))
    highest = max((sum(_of(layers, start)) for start, _ in spans), default=0)
    top = nice_top(highest)
    drawn = [_column(layers, span, top, time_range, zoom) for span in spans]
    lines = [
        element(
            "span",
            element("span", formats.count(round(top * part)), class_="at-line-name"),
            class_="at-line",
            style=f"bottom:{100 * part:g}%",
        )
        for part in (1, 0.5)
        if float(top * part).is_integer()
    ]
    plot = element("div", *lines, element("div", *drawn, class_="at-columns-of"), class_="at-plot")
    ticks = element("div", *_ticks(time_range), class_="at-ticks", aria_hidden="true")
    label = f"{name}, from {_minute(time_range.start)} to {_minute(time_range.end)} UTC"
    unit = element("div", "time (UTC)", class_="at-axis-name")
    return element("div", plot, ticks, unit, class_="at-chart", role="group", aria_label=label)


def legend(entries: Iterable[tuple[Child, str | None, str | None]]) -> Markup:
    """Name the layers: what is said, the swatch's tone where it has one, and a link."""
    items = []
    for said, tone, href in entries:
        swatch = element("span", class_=f"at-swatch at-fill-{tone}") if tone else None
        inside = (swatch, said)
        items.append(element("a", *inside, href=href) if href else element("span", *inside))
    return element("div", *items, class_="at-legend")


def sparkline(counts: Sequence[int], tone: str) -> Markup:
    """Build a row of bars that shows the shape of counts; the number beside it says the rest."""
    highest = max(counts, default=0) or 1
    bars = [element("span", style=f"height:{100 * one / highest:.0f}%") for one in counts]
    return element("span", *bars, class_=f"at-spark at-fills-{tone}", aria_hidden="true")


def sampled(layer: Layer, bucket: timedelta, time_range: TimeRange, most: int = 32) -> list[int]:
    """Return a layer's counts in at most so many equal steps."""
    counts = [layer.counts.get(start, 0) for start, _ in _buckets(bucket, time_range)]
    width = -(-len(counts) // most) or 1
    return [sum(counts[first : first + width]) for first in range(0, len(counts), width)]


def nice_top(highest: int) -> int:
    """Return the least of 1, 2, 4, 6, 10, 20, 40, 60, 100, … that is no less."""
    if highest <= 1:
        return 1
    power = 1
    while True:
        for factor in (1, 2, 4, 6, 10):
            if factor * power >= highest:
                return factor * power
        power *= 10


def _of(layers: Iterable[Layer], start: datetime) -> list[int]:
    return [layer.counts.get(start, 0) for layer in layers]


def _buckets(bucket: timedelta, time_range: TimeRange) -> Iterable[tuple[datetime, datetime]]:
    start = time_range.start - (time_range.start - _EPOCH) % bucket
    while start < time_range.end:
        yield start, start + bucket
        start += bucket


def _column(
    layers: Sequence[Layer],
    span: tuple[datetime, datetime],
    top: int,
    time_range: TimeRange,
    zoom: Callable[[datetime, datetime], str],
) -> Markup:
    start, end = span
    left, right = _place(start, time_range), _place(end, time_range)
    shown = [(layer, layer.counts.get(start, 0)) for layer in layers]
    said = ", ".join(f"{formats.count(count)} {layer.word}" for layer, count in shown if count)
    tip = f"{_minute(start)} – {formats.clock(end)[:5]} UTC: {said or 'nothing'}"
    side = "at-tip-left" if left < _HALF else "at-tip-right"
    parts = [
        element(
            "span",
            class_=f"at-part at-fill-{layer.tone}",
            style=f"height:{100 * count / top:.2f}%",
        )
        for layer, count in shown
        if count
    ]
    return element(
        "a",
        *parts,
        element("span", tip, class_=f"at-tip {side}"),
        href=zoom(max(start, time_range.start), min(end, time_range.end)),
        class_="at-column",
        style=f"left:{left:.3f}%;width:{right - left:.3f}%",
        tabindex="-1",
    )


def _place(moment: datetime, time_range: TimeRange) -> float:
    if not time_range.length:
        return 0.0
    return min(100.0, max(0.0, 100 * ((moment - time_range.start) / time_range.length)))


def _ticks(time_range: TimeRange) -> Iterable[Markup]:
    step = next((one for one in _STEPS if one * _MOST_TICKS >= time_range.length), _STEPS[-1])
    at = time_range.start - (time_range.start - _EPOCH) % step
    while at <= time_range.end:
        if at >= time_range.start:
            name = f"{at:%d %b}" if step >= _DAY or at.hour == at.minute == 0 else f"{at:%H:%M}"
            yield element("span", name, style=f"left:{_place(at, time_range):.3f}%")
        at += step


def _minute(moment: datetime) -> str:
    return formats.instant(moment)[:16]
