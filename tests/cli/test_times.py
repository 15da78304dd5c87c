"""Times and spans are read as people type them."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvaltrail.local.cli.times import gap, iso, parse_instant, parse_span, range_of

NOW = datetime(2026, 3, 9, 6, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("24h", timedelta(hours=24)),
        ("1d12h", timedelta(hours=36)),
        ("1.5h", timedelta(minutes=90)),
        ("250ms", timedelta(milliseconds=250)),
        (" 2W ", timedelta(weeks=2)),
    ],
)
def test_a_span_is_numbers_with_units(text: str, span: timedelta) -> None:
    """Spans such as 90s, 24h and 1d12h mean what they say."""
    assert parse_span(text) == span


@pytest.mark.parametrize("text", ["", "24", "h", "24 h", "-1h", "0s", "1y", "1e9h", "٣h", "99999d"])
def test_a_text_that_is_no_span_is_refused_by_its_name(text: str) -> None:
    """What is no usable span is refused with an example of one."""
    with pytest.raises(ValueError, match="span of time"):
        parse_span(text)


@given(st.text(max_size=12))
def test_no_text_breaks_the_reader_of_spans(text: str) -> None:
    """Whatever is typed, it is a positive span or a ValueError."""
    with contextlib.suppress(ValueError):
        assert parse_span(text) > timedelta(0)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-08T06:00:00Z", datetime(2026, 3, 8, 6, tzinfo=UTC)),
        ("2026-03-08T06:00:00", datetime(2026, 3, 8, 6, tzinfo=UTC)),
        ("2026-03-08", datetime(2026, 3, 8, tzinfo=UTC)),
        ("2026-03-08T08:00:00+02:00", datetime(2026, 3, 8, 6, tzinfo=UTC)),
        ("now", NOW),
        ("24h", NOW - timedelta(hours=24)),
    ],
)
def test_an_instant_is_iso_in_utc_or_a_span_before_now(text: str, instant: datetime) -> None:
    """Zone-less instants are UTC; a span counts back from now."""
    assert parse_instant(text, NOW) == instant


def test_a_range_without_options_is_the_last_day() -> None:
    """Without options the range is the last 24 hours, and a minute of grace for clocks ahead."""
    found = range_of(last=None, since=None, until=None, now=NOW)
    assert (found.start, found.end) == (NOW - timedelta(hours=24), NOW + timedelta(minutes=1))


def test_a_range_cannot_be_told_twice_or_backwards() -> None:
    """--last with --since, and an end before the start, are refused."""
    with pytest.raises(ValueError, match="--last and --since"):
        range_of(last="1h", since="2h", until=None, now=NOW)
    with pytest.raises(ValueError, match="--until"):
        range_of(last=None, since="1h", until="2h", now=NOW)


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(milliseconds=12), "12 ms"),
        (timedelta(seconds=4.2), "4.2 s"),
        (timedelta(seconds=190), "3 min 10 s"),
        (timedelta(minutes=2), "2 min"),
        (timedelta(days=2, hours=4), "2 d 4 h"),
        (timedelta(seconds=-5), "−5.0 s"),
    ],
)
def test_a_gap_is_said_as_people_say_it(span: timedelta, words: str) -> None:
    """Gaps are shown in the two largest units."""
    assert gap(span) == words


def test_instants_are_shown_in_utc_with_milliseconds() -> None:
    """An instant is shown as ISO 8601 in UTC."""
    assert iso(NOW + timedelta(microseconds=1500)) == "2026-03-09T06:00:00.001Z"
