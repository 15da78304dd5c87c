"""Where the gate takes the time from."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time; tests give `approvaltrail.gate.testing.ManualClock`."""

    def now(self) -> datetime:
        """Return the present instant, aware and in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the present instant, aware and in UTC."""
        return datetime.now(UTC)
