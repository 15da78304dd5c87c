"""Which times an event may bear: not further ahead than clocks differ, not older than retention."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from approvaltrail.store.answers import TimeRange


def time_window(
    *, retention_days: int, future_tolerance_seconds: int, now: datetime | None = None
) -> TimeRange:
    """Return the range that `occurred_at` of an event must lie in to be stored now."""
    instant = now or datetime.now(UTC)
    return TimeRange(
        instant - timedelta(days=retention_days),
        instant + timedelta(seconds=future_tolerance_seconds),
    )
