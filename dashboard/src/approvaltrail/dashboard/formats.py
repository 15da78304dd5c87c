"""How instants, gaps, counts and long values read: one spelling each, everywhere.

Instants are UTC with milliseconds; whatever zone they come in, they are converted before they are
shown. Gaps read as people say them, in the two largest units, cut and never rounded up: a gap that
reads "2 min 0 s" has lasted two minutes.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

MINUS: Final = "−"
INSTANT_STEP: Final = timedelta(microseconds=1)
"""The least step between two instants."""
_MILLISECOND: Final = timedelta(milliseconds=1)
_SECOND: Final = timedelta(seconds=1)
_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


def instant(moment: datetime) -> str:
    """Spell an instant: `2026-03-08 06:59:59.999`, in UTC.

    Raises:
        ValueError: the time has no zone, so it is no instant.
    """
    text = _in_utc(moment).strftime("%Y-%m-%d %H:%M:%S.%f")
    return text[:-3]


def second(moment: datetime) -> str:
    """Spell an instant to the second, in UTC, cut: `2026-03-08 06:59:59`."""
    return instant(moment)[:19]


def iso(moment: datetime) -> str:
    """Spell an instant as it stands in URLs and exports: `2026-03-08T06:59:59.999Z`."""
    moment = _in_utc(moment)
    spec = "seconds"
    if moment.microsecond:
        spec = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    return moment.replace(tzinfo=None).isoformat(timespec=spec) + "Z"


def clock(moment: datetime) -> str:
    """Spell the time of day with milliseconds, in UTC: `06:59:59.999`."""
    return instant(moment)[11:]


def day(moment: datetime) -> str:
    """Spell the day, in UTC: `2026-03-08`."""
    return instant(moment)[:10]


def moment_or_none(text: str) -> datetime | None:
    """Read an instant from a URL or a person; a text without a zone is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text.strip().replace(" UTC", "Z"))
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def gap(length: timedelta) -> str:
    """Say how long: `240 ms`, `4.2 s`, `3 min 10 s`, `1 h 4 min`, `2 d 4 h`; negative with `−`."""
    if length < timedelta(0):
        return MINUS + gap(-length)
    if length < _SECOND:
        return f"{length // _MILLISECOND} ms"
    if length < _MINUTE:
        tenths = length // (_SECOND / 10)
        return f"{tenths / 10:g} s"
    if length < _HOUR:
        return _two(length, _MINUTE, "min", _SECOND, "s")
    if length < _DAY:
        return _two(length, _HOUR, "h", _MINUTE, "min")
    return _two(length, _DAY, "d", _HOUR, "h")


def ago(moment: datetime, now: datetime) -> str:
    """Say how long ago, `now` for what lies in the future by a skewed clock."""
    since = now - moment
    return "now" if since < _SECOND else f"{gap(since)} ago"


def count(number: int) -> str:
    """Group digits: `1,204`."""
    return f"{number:,}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Say how many of what: `1 reuse`, `14 reuses`, `2 replies` with its own plural."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def change(now: int, before: int) -> str:
    """Say how a count moved against the period before, without a percentage of nothing."""
    if now == before:
        return "as before"
    sign = "+" if now > before else MINUS
    if before == 0:
        return f"{sign}{count(abs(now - before))}, none before"
    return f"{sign}{abs(now - before) / before:.0%} from {count(before)}"


def cut(text: str, head: int = 6, tail: int = 4) -> tuple[str, str, str]:
    """Split a long value into the head, the middle that may be hidden, and the tail.

    A middle of three characters or fewer is not worth hiding.
    """
    if len(text) <= head + tail + 3:
        return text, "", ""
    return text[:head], text[head:-tail], text[-tail:]


def _two(length: timedelta, large: timedelta, name: str, small: timedelta, part: str) -> str:
    whole, rest = divmod(length, large)
    pieces = rest // small
    return f"{whole} {name} {pieces} {part}" if pieces else f"{whole} {name}"


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a time without a zone is no instant; give it one, such as +00:00")
    return moment.astimezone(UTC)
