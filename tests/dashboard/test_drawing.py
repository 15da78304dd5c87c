"""Charts and axes say what the numbers say: nothing lost, nothing out of place."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.reading import Reader

from approvaltrail.dashboard import axis, charts
from approvaltrail.dashboard.axis import Scale
from approvaltrail.dashboard.charts import Layer
from approvaltrail.store.answers import TimeRange

START = datetime(2026, 3, 9, 6, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = TimeRange(START, START + timedelta(hours=24))


def layer(word: str, *counts: int) -> Layer:
    found = {START + HOUR * place: count for place, count in enumerate(counts) if count}
    return Layer(word=word, tone="issued", counts=found)


def drawn(*layers: Layer, time_range: TimeRange = DAY) -> Reader:
    return Reader(
        charts.columns(
            "Events", layers, HOUR, time_range, lambda a, b: f"events?from={a:%H}-{b:%H}"
        )
    )


def test_a_column_for_every_bucket_with_its_own_words_and_span() -> None:
    """Also where nothing happened; the link is to the bucket's own hour."""
    read = drawn(layer("issued", 3, 0, 5), layer("refused", 1))
    assert read.elements.count("a") == 24
    assert "2026-03-09 06:00 – 07:00 UTC: 3 issued, 1 refused" in read.text
    assert "2026-03-09 07:00 – 08:00 UTC: nothing" in read.text
    assert read.links[:2] == ["events?from=06-07", "events?from=07-08"]


def test_a_range_that_cuts_a_bucket_links_to_what_is_in_the_range() -> None:
    """A zoom never shows more than the column counted."""
    cut = TimeRange(START + timedelta(minutes=30), START + timedelta(hours=2, minutes=30))
    read = drawn(layer("issued", 3, 1, 5), time_range=cut)
    lefts = [value for name, value in read.attributes if name == "style" and "left:" in str(value)]
    assert "left:0.000%;width:25.000%" in lefts
    assert "left:25.000%;width:50.000%" in lefts
    assert "left:75.000%;width:25.000%" in lefts


@given(st.integers(0, 10**9))
def test_the_scale_holds_the_highest_and_wastes_little(highest: int) -> None:
    """The top is round, no less than what is drawn, and no more than twice it and a half."""
    top = charts.nice_top(highest)
    assert highest <= top <= max(1, 2.5 * highest)
    assert re.fullmatch(r"(1|2|4|6)0*", str(top))


@given(st.lists(st.integers(0, 1000), max_size=30), st.integers(1, 40))
def test_a_sparkline_loses_no_count(counts: list[int], most: int) -> None:
    """However few its bars, they add up to what the number beside says."""
    shape = charts.sampled(layer("issued", *counts[:24]), HOUR, DAY, most)
    assert sum(shape) == sum(counts[:24])
    assert len(shape) <= most


GAPS = st.lists(st.integers(0, 10**9), min_size=1, max_size=20)


@given(GAPS, st.integers(0, 10**9))
def test_an_axis_keeps_order_and_stays_inside(gaps: list[int], life: int) -> None:
    """Whatever the gaps, in milliseconds: later is never further left, and nothing lies outside."""
    instants = [START]
    for gap in gaps:
        instants.append(instants[-1] + timedelta(milliseconds=gap))
    scale = Scale.of(instants, START + timedelta(milliseconds=life))
    places = [scale.place(one) for one in instants]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    ticks = [place for place, _ in scale.ticks()]
    assert ticks == sorted(ticks)
    assert ticks[0] == places[0]


@pytest.mark.parametrize(
    ("seconds", "logarithmic"),
    [([20, 30, 60], False), ([1, 86_400], True), ([0.05, 20, 30], False), ([2, 2, 7_200], True)],
)
def test_the_scale_is_logarithmic_where_gaps_span_decades(
    seconds: list[float], *, logarithmic: bool
) -> None:
    """Seconds beside days would otherwise be one point; what is nearly together does not count."""
    instants = [START]
    for gap in seconds:
        instants.append(instants[-1] + timedelta(seconds=gap))
    assert Scale.of(instants, None).is_logarithmic is logarithmic


def test_seconds_and_days_are_both_seen() -> None:
    """Issued, accepted after 20 s, replayed after a day: three places far from one another."""
    instants = [START, START + timedelta(seconds=20), START + timedelta(days=1)]
    scale = Scale.of(instants, START + timedelta(minutes=10))
    first, second, third = (scale.place(one) for one in instants)
    assert second - first > axis._APART
    assert third - second > axis._APART
