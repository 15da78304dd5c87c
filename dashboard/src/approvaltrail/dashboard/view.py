"""What is looked at: range, tenant, and the links that carry both along.

The URL is the state. A preset such as `24h` moves with the clock; `custom` has absolute UTC bounds,
and a link to be shared is always made absolute.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote, urlencode

from approvaltrail.dashboard import formats
from approvaltrail.store.answers import TimeRange

PRESETS: Final = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
CUSTOM: Final = "custom"
DEFAULT: Final = "24h"
_STEP: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the controls say, before the clock is read."""

    range_name: str = DEFAULT
    start: str = ""
    end: str = ""
    tenant: str = ""
    paused: bool = False
    """A page that looks again by itself does not, for now."""

    def at(self, now: datetime) -> View:
        """Turn the choice into bounds. A custom range that cannot be read falls back on a day."""
        return View(choice=self, time_range=self._bounds(now), now=now)

    def problem(self) -> str | None:
        """Say what is wrong with a custom range."""
        if self.range_name != CUSTOM:
            return None
        start, end = formats.moment_or_none(self.start), formats.moment_or_none(self.end)
        if start is None or end is None:
            return "Give both bounds in UTC, such as 2026-03-08T06:00:00Z. Shown: the last 24 h."
        return None if start <= end else "The range ends before it starts. Shown: the last 24 h."

    def _bounds(self, now: datetime) -> TimeRange:
        if self.range_name == CUSTOM and self.problem() is None:
            start, end = formats.moment_or_none(self.start), formats.moment_or_none(self.end)
            if start is not None and end is not None:
                return TimeRange(start, end)
        # The end lies a moment ahead, on a fixed step, so that answers can be kept for that long.
        seconds = _STEP.total_seconds()
        end = datetime.fromtimestamp((now.timestamp() // seconds + 1) * seconds, UTC)
        return TimeRange(end - PRESETS.get(self.range_name, PRESETS[DEFAULT]), end)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Bounds and tenant in force, and links that keep them."""

    choice: Choice
    time_range: TimeRange
    now: datetime

    @property
    def tenant(self) -> str | None:
        """The tenant chosen, or None for all."""
        return self.choice.tenant.strip() or None

    def href(self, page: str, **parameters: str | int | None) -> str:
        """Return the link to a page with this view and more parameters."""
        kept = {"range": self.choice.range_name}
        if self.choice.range_name == CUSTOM:
            kept |= {"from": self.choice.start, "to": self.choice.end}
        elif self.choice.range_name == DEFAULT:
            kept = {}
        return self._link(page, kept, parameters)

    def absolute_href(self, page: str, **parameters: str | int | None) -> str:
        """Return the same with absolute bounds, so that the link shows the same tomorrow."""
        return self.between(page, self.time_range.start, self.time_range.end, **parameters)

    def between(
        self, page: str, start: datetime, end: datetime, **parameters: str | int | None
    ) -> str:
        """Return the link to a page for a span of time of its own."""
        kept = {"range": CUSTOM, "from": formats.iso(start), "to": formats.iso(end)}
        return self._link(page, kept, parameters)

    def wider(self, page: str, **parameters: str | int | None) -> str:
        """Return the link to a page for a span four times as long around this one."""
        bounds = self.time_range
        more = max(bounds.length * 1.5, timedelta(minutes=1))
        end = min(bounds.end + more, max(bounds.end, self.now))
        return self.between(page, bounds.start - more, end, **parameters)

    def latest(self, page: str, **parameters: str | int | None) -> str:
        """Return the link to a page for the usual range."""
        return self._link(page, {}, parameters)

    @property
    def ends_with_now(self) -> bool:
        """Whether nothing can have happened after the range."""
        return self.time_range.end >= self.now

    @property
    def is_absolute(self) -> bool:
        """Whether the bounds stand still."""
        return self.choice.range_name == CUSTOM

    def within(self, span: timedelta) -> TimeRange:
        """Return the last `span` up to the moment of this view."""
        recent = Choice().at(self.now).time_range
        return TimeRange(recent.end - span, recent.end)

    def _link(
        self, page: str, kept: dict[str, str], parameters: dict[str, str | int | None]
    ) -> str:
        if self.tenant and "tenant" not in parameters:
            kept["tenant"] = self.tenant
        given = {key.rstrip("_"): str(value) for key, value in parameters.items() if value}
        query = urlencode(kept | given, quote_via=quote, safe="")
        return f"{page}?{query}" if query else page
