"""For tests of what embeds a producer: a recorder in memory that holds events to the same contract.

```python
recorder = MemoryRecorder()
gate = Gate(settings, recorder=recorder, …)
…
assert recorder.events.types == ["issued", "accepted", "completed"]
with recorder.unavailable("journal full"):
    …  # the gate must refuse
```
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from approvaltrail.producer.errors import Cause, JournalUnavailableError
from approvaltrail.producer.producer import system_clock
from approvaltrail.producer.unrecorded import Unrecorded, event_of
from approvaltrail.schemas.encoding import (
    decode_event,
    encode_event,
    instant_of,
    producer_stamp,
    stamp,
)
from approvaltrail.schemas.events import ApprovalEvent, RecordedEvent
from approvaltrail.schemas.identity import new_producer_id
from approvaltrail.schemas.recorder import Recorded


class EventLog(tuple[RecordedEvent, ...]):
    """Recorded events, oldest first."""

    __slots__ = ()

    @property
    def types(self) -> list[str]:
        """The events' types, as text."""
        return [event.event_type.value for event in self]

    @property
    def reasons(self) -> list[str | None]:
        """The events' reasons, as text; None where there is none."""
        return [event.reason.value if event.reason else None for event in self]

    def of_type(self, event_type: str) -> EventLog:
        """Return the events of one type."""
        return EventLog(event for event in self if event.event_type.value == event_type)


class MemoryRecorder:
    """An EventRecorder without disk or broker. Every event passes through its encoded form."""

    def __init__(
        self,
        *,
        service: str = "test",
        instance: str = "test",
        clock: Callable[[], int] = system_clock,
    ) -> None:
        """Take what is stamped on events; `clock` gives µs since the epoch."""
        self.producer_id = new_producer_id()
        self._clock = clock
        self._stamp = producer_stamp(self.producer_id, service, instance)
        self._events: list[RecordedEvent] = []
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._last_recorded_at = 0
        self.unrecorded = Unrecorded()
        self.scrubbed_values = 0

    @property
    def events(self) -> EventLog:
        """What was recorded so far."""
        return EventLog(self._events)

    async def record(self, event: ApprovalEvent) -> Recorded:
        """Record one event; errors as `Producer.record`."""
        return self.record_sync(event)

    def record_sync(self, event: ApprovalEvent) -> Recorded:
        """Record one event; errors as `Producer.record_sync`."""
        self.check()
        return self._append(event)

    async def record_many(self, events: list[ApprovalEvent]) -> tuple[Recorded, ...]:
        """Record events together; errors as `Producer.record_many`."""
        self.check()
        return tuple(map(self._append, events))

    def check(self) -> None:
        """Raise JournalUnavailableError while a test has made the recorder unavailable."""
        if self._reason is not None:
            raise JournalUnavailableError(
                Cause.FULL, f"{self._reason}; nothing was recorded (a test made it so)"
            )

    def count_unrecorded(self, event: ApprovalEvent) -> None:
        """Count a refusal; it is recorded in sum when the recorder is available again."""
        self.unrecorded.add(event)

    def report_scrubbed(self, values: int) -> None:
        """Count values from which a token was removed."""
        with self._lock:
            self.scrubbed_values += values

    @contextlib.contextmanager
    def unavailable(self, reason: str = "journal full") -> Iterator[None]:
        """Fail every recording inside the block, for this reason."""
        self.fail(reason)
        try:
            yield
        finally:
            self.recover()

    def fail(self, reason: str) -> None:
        """Fail every recording from now on."""
        self._reason = reason

    def recover(self) -> None:
        """Record again, first of all the sums of what could not be recorded."""
        self._reason = None
        for item in self.unrecorded.take().items():
            self._append(event_of(*item))

    def _append(self, event: ApprovalEvent) -> Recorded:
        tail = encode_event(event)
        with self._lock:
            sequence = len(self._events) + 1
            recorded_at = max(self._clock(), self._last_recorded_at)
            self._last_recorded_at = recorded_at
            self._events.append(decode_event(stamp(sequence, recorded_at, self._stamp) + tail))
        return Recorded(
            producer_id=self.producer_id, sequence=sequence, recorded_at=instant_of(recorded_at)
        )
