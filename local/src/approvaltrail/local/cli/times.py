"""Times and spans as people type them: `2026-03-08T06:00:00Z`, `24h`, `1d12h`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from approvaltrail.store.answers import TimeRange

_SPAN: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+", re.ASCII)
_PIECE: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])", re.ASCII)
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST: Final = timedelta(days=36_500)
_LATER: Final = timedelta(minutes=1)
_EARLIEST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_LATEST: Final = datetime(2262, 1, 1, tzinfo=UTC)
"""The store's calendar, with a day of room."""


def parse_span(text: str) -> timedelta:
    """Read a span such as `90s`, `15m`, `24h`, `1d12h` or `2w`.

    Raises:
        ValueError: it is none, it is zero, or it is longer than a century.
    """
    cleaned = text.strip().lower()
    if not _SPAN.fullmatch(cleaned):
        raise ValueError(f"{text!r} is not a span of time: write such as 90s, 15m, 24h, 7d, 1d12h")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PIECE.findall(cleaned))
    if not 0 < seconds <= _LONGEST.total_seconds():
        raise ValueError(f"{text!r} is no usable span of time: more than 0, at most a century")
    return timedelta(seconds=seconds)


def parse_instant(text: str, now: datetime) -> datetime:
    """Read an ISO instant (UTC where no zone is given), `now`, or a span before now.

    Raises:
        ValueError: it is none of these.
    """
    cleaned = text.strip()
    if cleaned.lower() == "now":
        return now
    if _SPAN.fullmatch(cleaned.lower()):
        return now - parse_span(cleaned)
    try:
        instant = datetime.fromisoformat(cleaned)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time: write ISO 8601 in UTC such as 2026-03-08T06:00:00Z, "
            "a span before now such as 24h, or now"
        ) from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    if not _EARLIEST <= instant <= _LATEST:
        raise ValueError(f"{text!r} is outside of what the store keeps: 1970-01-02 to 2262-01-01")
    return instant.astimezone(UTC)


def range_of(*, last: str | None, since: str | None, until: str | None, now: datetime) -> TimeRange:
    """Return the range that the options name.

    Without `until` the range reaches a minute past now, as clocks of servers may be ahead.

    Raises:
        ValueError: `last` and `since` together, a time that is none, or an end before the start.
    """
    if last is not None and since is not None:
        raise ValueError("--last and --since both say where the range begins: give one of them")
    end = now + _LATER if until is None else parse_instant(until, now)
    if since is not None:
        start = parse_instant(since, now)
    else:
        start = (now if until is None else end) - parse_span(last or "24h")
    if end < start:
        raise ValueError("--until lies before the start of the range")
    return TimeRange(start, end)


def iso(instant: datetime) -> str:
    """Return an instant in UTC with milliseconds, as the pages show it."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def gap(span: timedelta) -> str:
    """Return a span as people say it: `4.2 s`, `3 min 10 s`, `2 d 4 h`."""
    seconds = span.total_seconds()
    sign, seconds = ("−", -seconds) if seconds < 0 else ("", seconds)
    if seconds < 1:
        return f"{sign}{seconds * 1000:.0f} ms"
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{sign}{seconds:.1f} s"
    whole = int(seconds)
    for unit, size, smaller, part in (
        ("d", 86_400, "h", 3600),
        ("h", 3600, "min", 60),
        ("min", 60, "s", 1),
    ):
        if whole >= size:
            rest = whole % size // part
            return f"{sign}{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    raise AssertionError  # a whole of at least 60 has minutes
