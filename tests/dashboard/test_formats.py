"""Instants, gaps and counts have one spelling each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvaltrail.dashboard import formats

GAPS = {
    timedelta(0): "0 ms",
    timedelta(milliseconds=240): "240 ms",
    timedelta(microseconds=999_999): "999 ms",
    timedelta(seconds=4.2): "4.2 s",
    timedelta(seconds=21): "21 s",
    timedelta(seconds=59.99): "59.9 s",
    timedelta(seconds=60): "1 min",
    timedelta(minutes=3, seconds=10): "3 min 10 s",
    timedelta(minutes=59, seconds=59.9): "59 min 59 s",
    timedelta(hours=1, minutes=4): "1 h 4 min",
    timedelta(days=2, hours=4): "2 d 4 h",
    timedelta(days=400): "400 d",
    -timedelta(minutes=9): "−9 min",
}


@pytest.mark.parametrize("length", GAPS)
def test_gaps_read_as_people_say_them(length: timedelta) -> None:
    """Two units at most, cut and never rounded up."""
    assert formats.gap(length) == GAPS[length]


@given(st.timedeltas(timedelta(0), timedelta(days=900)))
def test_a_gap_never_reads_longer_than_it_was(length: timedelta) -> None:
    """What is said, read back, is at most what passed, and close to it."""
    units = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400}
    words = formats.gap(length).split()
    said = sum(
        float(number) * units[unit] for number, unit in zip(words[::2], words[1::2], strict=True)
    )
    assert said <= length.total_seconds() + 1e-6
    assert said >= length.total_seconds() * 0.95 - 0.001


@pytest.mark.parametrize("minutes", [60, 330, -210, 0])
def test_d_14_times_of_any_offset_are_shown_in_utc(minutes: int) -> None:
    """D-14: +01:00, +05:30 and −03:30 become UTC before they are shown."""
    moment = datetime(2026, 3, 8, 6, 59, 59, 999_000, tzinfo=UTC)
    there = moment.astimezone(timezone(timedelta(minutes=minutes)))
    assert formats.instant(there) == "2026-03-08 06:59:59.999"
    assert formats.iso(there) == "2026-03-08T06:59:59.999Z"
    assert formats.clock(there) == "06:59:59.999"


def test_a_time_without_a_zone_is_refused() -> None:
    """A zone-less time is no instant, so it is never shown as one."""
    with pytest.raises(ValueError, match="without a zone"):
        formats.instant(datetime(2026, 3, 8))  # noqa: DTZ001 - the point


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_an_instant_in_a_url_reads_back(moment: datetime) -> None:
    """What a link holds is the same instant, to the millisecond."""
    read = formats.moment_or_none(formats.iso(moment))
    assert read is not None
    assert timedelta(0) <= moment - read < timedelta(milliseconds=1)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "<script>", "now()"])
def test_what_is_no_instant_is_none(text: str) -> None:
    """A URL may hold anything."""
    assert formats.moment_or_none(text) is None


def test_a_change_is_told_without_a_share_of_nothing() -> None:
    """From none there is no percentage."""
    assert formats.change(14, 0) == "+14, none before"
    assert formats.change(5, 5) == "as before"
    assert formats.change(50, 100) == "−50% from 100"
    assert formats.change(1204, 1000) == "+20% from 1,000"


@given(st.text(max_size=80))
def test_a_cut_value_is_whole_when_joined(text: str) -> None:
    """Cutting hides the middle; it never loses it."""
    assert "".join(formats.cut(text)) == text
