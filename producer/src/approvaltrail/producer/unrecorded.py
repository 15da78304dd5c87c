"""Refusals that could not be recorded: counted in memory, recorded in sum when that works again."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from approvaltrail.schemas.events import ApprovalEvent, EventType, Reason
from approvaltrail.schemas.identity import new_event_id

if TYPE_CHECKING:
    from datetime import datetime

SEVERAL_TOOLS: Final = "(several)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """What was counted for one reason."""

    count: int
    first_at: datetime
    last_at: datetime
    tool: str

    def with_one_more(self, event: ApprovalEvent) -> Sum:
        """Return the sum with this event in it."""
        return Sum(
            count=self.count + 1,
            first_at=min(self.first_at, event.occurred_at),
            last_at=max(self.last_at, event.occurred_at),
            tool=self.tool if self.tool == event.tool else SEVERAL_TOOLS,
        )


class Unrecorded:
    """Counts by reason; there are as many sums as reasons, whatever a flood contains."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[Reason, Sum] = {}
        self.total = 0
        """Counted and not yet recorded."""

    def add(self, event: ApprovalEvent) -> None:
        """Count one event. One that is no refusal counts under `not_recorded`."""
        reason = event.reason or Reason.NOT_RECORDED
        with self._lock:
            known = self._sums.get(reason)
            self._sums[reason] = (
                known.with_one_more(event)
                if known
                else Sum(
                    count=1,
                    first_at=event.occurred_at,
                    last_at=event.occurred_at,
                    tool=event.tool,
                )
            )
            self.total += 1

    def take(self) -> dict[Reason, Sum]:
        """Take all sums out, to record them."""
        with self._lock:
            taken, self._sums, self.total = self._sums, {}, 0
        return taken

    def give_back(self, taken: dict[Reason, Sum]) -> None:
        """Put sums back that could not be recorded after all."""
        with self._lock:
            for reason, old in taken.items():
                new = self._sums.get(reason)
                self._sums[reason] = (
                    Sum(
                        count=old.count + new.count,
                        first_at=min(old.first_at, new.first_at),
                        last_at=max(old.last_at, new.last_at),
                        tool=old.tool if old.tool == new.tool else SEVERAL_TOOLS,
                    )
                    if new
                    else old
                )
                self.total += old.count


def event_of(reason: Reason, counted: Sum) -> ApprovalEvent:
    """Return the event that records a sum: a refusal whose attribute `count` says how many."""
    return ApprovalEvent(
        event_id=new_event_id(),
        event_type=EventType.REFUSED,
        reason=reason,
        occurred_at=counted.last_at,
        tool=counted.tool,
        attributes=(
            ("count", str(counted.count)),
            ("first_at", counted.first_at.isoformat()),
            ("last_at", counted.last_at.isoformat()),
            ("unrecorded_sum", "true"),
        ),
    )
