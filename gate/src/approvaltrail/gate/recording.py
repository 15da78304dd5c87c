"""A recorder that fails closed, whatever it raises.

The gate knows two answers: the event is on disk, or it is not known to be. An error of any other
kind than the contract's must not slip past the refusal that says so, nor hide the result of work
that is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from approvaltrail.schemas import (
    ApprovalEvent,
    EventRecorder,
    Recorded,
    RecorderUnavailableError,
)

_log = structlog.get_logger(__name__)


class ClosedRecorder:
    """Asks another recorder, and calls every error of it `RecorderUnavailableError`."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    async def record(self, event: ApprovalEvent) -> Recorded:
        """Record one event; see `EventRecorder.record`."""
        with _closed():
            return await self._recorder.record(event)

    def record_sync(self, event: ApprovalEvent) -> Recorded:
        """Record one event; see `EventRecorder.record_sync`."""
        with _closed():
            return self._recorder.record_sync(event)

    def check(self) -> None:
        """Return if an event could be recorded now; see `EventRecorder.check`."""
        with _closed():
            self._recorder.check()

    def count_unrecorded(self, event: ApprovalEvent) -> None:
        """Count a refusal that could not be recorded; the refusal stands even if that fails."""
        try:
            self._recorder.count_unrecorded(event)
        except Exception as error:  # noqa: BLE001 - nothing may stand between a caller and a refusal
            _log.error("refusal_not_counted", event_id=event.event_id, error=type(error).__name__)

    def report_scrubbed(self, values: int) -> None:
        """Count values from which a token was removed; what was removed stays so if that fails."""
        try:
            self._recorder.report_scrubbed(values)
        except Exception as error:  # noqa: BLE001 - a figure is no reason to refuse or to let pass
            _log.error("scrubbing_not_counted", values=values, error=type(error).__name__)


@contextmanager
def _closed() -> Iterator[None]:
    try:
        yield
    except RecorderUnavailableError:
        raise
    except Exception as error:
        kind = type(error).__name__
        _log.error("recorder_failed", error=kind)
        raise RecorderUnavailableError(
            f"the recorder failed with a {kind}, so the event counts as not recorded"
        ) from error
