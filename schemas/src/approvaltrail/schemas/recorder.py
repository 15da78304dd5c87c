"""The seam between who decides and who records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from approvaltrail.schemas.events import ApprovalEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Where a recorded event stands: on disk, numbered by its journal."""

    producer_id: str
    sequence: int
    recorded_at: datetime


class EventRecorder(Protocol):
    """Takes events durably: when `record` returns, the event survives a crash of the process."""

    async def record(self, event: ApprovalEvent) -> Recorded:
        """Record one event.

        Raises:
            RecorderUnavailableError: nothing was recorded; the caller must not act on the event.
        """
        ...

    def record_sync(self, event: ApprovalEvent) -> Recorded:
        """Record one event from a thread without an event loop; errors as `record`."""
        ...

    def check(self) -> None:
        """Return if an event could be recorded now; never blocks on the disk or the network.

        Raises:
            RecorderUnavailableError: the journal is full, damaged or closed.
        """
        ...

    def count_unrecorded(self, event: ApprovalEvent) -> None:
        """Count a refusal that could not be recorded; it is recorded in sum on recovery."""
        ...

    def report_scrubbed(self, values: int) -> None:
        """Count values from which a token was removed before recording."""
        ...
