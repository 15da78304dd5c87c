"""Instants on which clocks go wrong."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from tests.support.story import Story

from approvaltrail.schemas.events import RecordedEvent

BEFORE_SUMMER_TIME = datetime(2026, 3, 8, 6, 59, 59, 999_000, tzinfo=UTC)
"""A millisecond before clocks in New York go forward."""
HOURS = datetime(2026, 2, 3, 0, 0, tzinfo=UTC)
"""A day on which every hour issues one token more than the hour before."""
BOUNDS = (datetime(2026, 2, 5, 10, 0, tzinfo=UTC), datetime(2026, 2, 5, 23, 45, tzinfo=UTC))
"""A token is issued on each."""
OFFSETS = (timedelta(hours=1), timedelta(hours=5, minutes=30), timedelta(hours=-3, minutes=-30))
"""The zones of three gates; in this order they issued, a minute apart."""
OFFSET_DAY = datetime(2026, 2, 7, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Edges:
    """What is stored."""

    events: list[RecordedEvent]
    summer_time: str
    """The nonce issued before summer time, and replayed then."""
    offsets: list[str]
    """The nonces issued by the three gates."""


def tell() -> Edges:
    """Tell it."""
    story = Story(HOURS)
    for hour in range(24):
        for number in range(hour + 1):
            story.now = HOURS + timedelta(hours=hour, minutes=2 * number)
            story.issue(story.call("hourly@corp.example"))
    for bound in BOUNDS:
        story.now = bound
        story.issue(story.call("bound@corp.example"))
    offsets = []
    for number, offset in enumerate(OFFSETS):
        story.now = (OFFSET_DAY + timedelta(minutes=number)).astimezone(timezone(offset))
        offsets.append(story.issue(story.call("offset@corp.example")))
    story.now = BEFORE_SUMMER_TIME - timedelta(seconds=30)
    call = story.call("clock@corp.example")
    summer_time = story.issue(call)
    story.after(seconds=10).accept(call, summer_time, outcome=None)
    story.now = BEFORE_SUMMER_TIME
    story.replay(call, summer_time)
    return Edges(story.events, summer_time, offsets)
