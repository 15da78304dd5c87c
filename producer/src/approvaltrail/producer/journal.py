"""A journal: durable, numbered, sealed, bounded. When `record` returns, the event is on disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from approvaltrail.producer.database import JournalDatabase
from approvaltrail.producer.errors import (
    Cause,
    EventTooLargeError,
    JournalUnavailableError,
)
from approvaltrail.producer.guard import FileGuard
from approvaltrail.producer.progress import Progress
from approvaltrail.producer.recording import Recording
from approvaltrail.producer.retention import Retention
from approvaltrail.producer.seals import Sealed, Sealer
from approvaltrail.producer.space import Space, row_bytes
from approvaltrail.producer.stamping import Stamper
from approvaltrail.producer.unrecorded import Unrecorded
from approvaltrail.producer.waiting import ThreadOutcome, Waiting
from approvaltrail.producer.writer import Writer
from approvaltrail.schemas import bounds
from approvaltrail.schemas.encoding import encode_event, instant_of
from approvaltrail.schemas.events import EventType, NonceTrust
from approvaltrail.schemas.recorder import Recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from approvaltrail.producer.metrics import JournalMetrics
    from approvaltrail.producer.opened import OpenedJournal
    from approvaltrail.producer.settings import ProducerSettings
    from approvaltrail.producer.stamping import Row
    from approvaltrail.producer.waiting import Answer
    from approvaltrail.schemas.events import ApprovalEvent

_STAMP_BYTES: Final = 2_048
"""Room for the stamped fields: two varints, the id, service and instance."""
MOST_EVENTS_AT_ONCE: Final = 10_000


class Journal:
    """One journal of this process. Records from coroutines and threads; the relay reads it."""

    def __init__(
        self,
        opened: OpenedJournal,
        settings: ProducerSettings,
        *,
        clock: Callable[[], int],
        metrics: JournalMetrics,
        unrecorded: Unrecorded | None = None,
        takes_events: bool = True,
    ) -> None:
        """Continue an opened journal; `clock` gives µs since the epoch."""
        state, database = opened.state, opened.database
        self._opened = opened
        self._stall_seconds = settings.stall_seconds
        self.path = opened.path
        self.state = state
        self.opened_at = clock()
        self.takes_events = takes_events
        self.progress = Progress(state, opened.lost)
        self.space = Space(settings.journal_limit_bytes, settings.journal_unverified_share)
        self.unrecorded = unrecorded or Unrecorded()
        self.on_commit: Callable[[], None] = _nothing
        sealer = Sealer(
            state, events=settings.seal_events, seconds=settings.seal_seconds, clock=clock
        )
        for bodies in database.bodies(state.sealed_sequence):
            sealer.add(bodies)
        self._recording = Recording(
            path=opened.path,
            database=database,
            guard=FileGuard(opened.path),
            stamper=Stamper(state, clock),
            sealer=sealer,
            progress=self.progress,
            retention=Retention(database, settings.journal_retention_hours),
            space=self.space,
            unrecorded=self.unrecorded,
            clock=clock,
        )
        self._writer = Writer(
            self._recording,
            queue_limit_bytes=settings.queue_limit_bytes,
            metrics=metrics,
            on_commit=self._committed,
        )
        if not takes_events:
            self._refuse("is only being sent on and takes no events")

    def start(self) -> None:
        """Start the writer."""
        self._writer.start()

    # --- recording

    async def record(self, event: ApprovalEvent) -> Recorded:
        """Record one event; a cancelled caller's event may be recorded all the same.

        Raises:
            JournalUnavailableError: nothing was recorded.
            EventTooLargeError: nothing was recorded, and never will be.
        """
        sequence, recorded_at = await self._submitted((self._row(event),), _unverified(event))
        return self._recorded(sequence, recorded_at)

    async def record_many(self, events: Sequence[ApprovalEvent]) -> tuple[Recorded, ...]:
        """Record events together, in order and without others between: all or none.

        Raises:
            JournalUnavailableError: none was recorded.
            EventTooLargeError: one is too large, or they are too many; none was recorded.
        """
        if not events:
            return ()
        if len(events) > MOST_EVENTS_AT_ONCE:
            raise EventTooLargeError(
                f"{len(events)} events at once, the bound is {MOST_EVENTS_AT_ONCE}: split them"
            )
        rows = tuple(map(self._row, events))
        first, recorded_at = await self._submitted(rows, any(map(_unverified, events)))
        return tuple(
            self._recorded(sequence, recorded_at) for sequence in range(first, first + len(rows))
        )

    def record_sync(self, event: ApprovalEvent) -> Recorded:
        """Record one event from a thread; errors as `record`."""
        row = self._row(event)
        outcome = ThreadOutcome()
        waiting = Waiting((row,), row_bytes(row[1], row[0]) + _STAMP_BYTES // 8, outcome, None)
        self._writer.submit(waiting, unverified=_unverified(event))
        # the watch answers a stalled disk at the stall limit; this is the limit behind it
        answer = outcome.wait(self._stall_seconds * 3)
        if answer is None:
            raise JournalUnavailableError(
                Cause.STALLED,
                f"the journal {self.path.file} did not answer in {self._stall_seconds * 3:g} s; "
                "whether the event is recorded is unknown. Look at the disk",
            )
        return self._recorded(*answer)

    def check(self) -> None:
        """Raise JournalUnavailableError if an event would not be recorded now; never waits."""
        self._writer.check()

    def count_unrecorded(self, event: ApprovalEvent) -> None:
        """Count a refusal that could not be recorded."""
        self.unrecorded.add(event)

    def _row(self, event: ApprovalEvent) -> Row:
        tail = encode_event(event)
        if len(tail) > bounds.EVENT_BYTES - _STAMP_BYTES:
            raise EventTooLargeError(
                f"the encoded event has {len(tail)} bytes, the bound is "
                f"{bounds.EVENT_BYTES - _STAMP_BYTES}; nothing was recorded. Shorten what it says"
            )
        return (event.nonce.encode() if event.nonce else None, tail)

    async def _submitted(self, rows: tuple[Row, ...], unverified: bool) -> Answer:  # noqa: FBT001
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        size = sum([row_bytes(tail, key) + _STAMP_BYTES // 8 for key, tail in rows])
        self._writer.submit(Waiting(rows, size, future, loop), unverified=unverified)
        return await future

    def _recorded(self, sequence: int, recorded_at: int) -> Recorded:
        return Recorded(
            producer_id=self.state.producer_id,
            sequence=sequence,
            recorded_at=instant_of(recorded_at),
        )

    # --- what others see

    @property
    def producer_id(self) -> str:
        """The journal's identity."""
        return self.state.producer_id

    @property
    def last_sequence(self) -> int:
        """Highest number recorded so far."""
        return self._recording.stamper.last_sequence

    def settled_until(self, now: int) -> int:
        """Return the instant, at most `now`, before which every event is in `last_sequence`."""
        return self._recording.stamper.settled_until(now)

    @property
    def last_recorded_at(self) -> int:
        """Time of that event, µs since the epoch; 0 before the first."""
        return self._recording.stamper.last_recorded_at

    @property
    def oldest_sequence(self) -> int:
        """First number that can still be sent again; 0 if none."""
        return self._recording.retention.oldest_sequence

    @property
    def sealed(self) -> Sealed:
        """How far the journal is sealed."""
        return self._recording.sealer.sealed

    @property
    def pending(self) -> int:
        """Events recorded and not yet acknowledged by the broker."""
        return max(0, self.last_sequence - self.progress.relayed_sequence)

    @property
    def delivered(self) -> bool:
        """Whether the broker has acknowledged every event and seal."""
        return self.pending == 0 and self.progress.relayed_seal >= self.sealed.number

    @property
    def trouble(self) -> JournalUnavailableError | None:
        """Why nothing can be recorded now, if that is so."""
        try:
            self.check()
        except JournalUnavailableError as error:
            return error
        return None

    @property
    def writing(self) -> bool:
        """Whether somebody's events are queued or on their way to the disk."""
        return self._writer.busy

    @property
    def writer_alive(self) -> bool:
        """Whether the writer's thread runs."""
        return self._writer.alive

    def reader(self) -> JournalDatabase:
        """Open a reading connection for the thread that calls."""
        return JournalDatabase.open_to_read(self.path)

    def watch(self) -> None:
        """Look after the writer: a disk that does not answer must not hold callers for ever."""
        self._writer.watch(self._stall_seconds)

    def write_hint(self) -> None:
        """Leave a hint of how far the journal has come, for a start after damage."""
        self._opened.write_hint(self.last_sequence, self.progress.relayed_sequence)

    # --- the end

    def stop_taking(self) -> None:
        """Take no more events."""
        self._refuse("is being closed and takes no events; restart the producer to record again")

    def finish(self, timeout_seconds: float) -> bool:
        """Write and seal what is queued and end the writer; the file stays open to the relay."""
        return self._writer.stop(timeout_seconds)

    def close(self) -> None:
        """Write the last position, close the file and free the lock."""
        if not self._writer.alive and self._writer.trouble is None:
            self._recording.finish_progress()
        self.write_hint()
        if (
            not self._writer.alive
        ):  # else the thread still holds the file: the process's end frees it
            self._recording.close()
            self._opened.lock.release()

    def let_go_in_child(self) -> None:
        """Free a forked child of the parent's lock: close the descriptor, unlock nothing."""
        self._opened.lock.release()

    def _committed(self) -> None:
        self.on_commit()

    def _refuse(self, what: str) -> None:
        self._writer.refuse_from_now_on(
            JournalUnavailableError(Cause.CLOSED, f"the journal {self.path.file} {what}")
        )


def _unverified(event: ApprovalEvent) -> bool:
    return event.event_type is EventType.REFUSED and event.nonce_trust is not NonceTrust.VERIFIED


def _nothing() -> None:
    """Nobody listens for commits."""
