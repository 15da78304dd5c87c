"""Delivers one journal: the next events and seals, isolated damage, and repairs on request."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import structlog

from approvaltrail.producer.log_events import Log
from approvaltrail.producer.reading import intact_rows, is_damage, is_intact, missing_ranges
from approvaltrail.schemas import topics
from approvaltrail.schemas.messages import SequenceRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from approvaltrail.producer.database import JournalDatabase
    from approvaltrail.producer.journal import Journal
    from approvaltrail.producer.link import Link
    from approvaltrail.producer.metrics import RelayMetrics
    from approvaltrail.producer.reading import JournalRow
    from approvaltrail.producer.repairs import Repair

_SEALS_AT_A_TIME: Final = 200
_DAMAGED: Final = "the event is damaged in the journal"
_DISCARDED: Final = "asked for after its retention in the journal was over"
_MOST_LOST_RANGES: Final = 1_000
"""Each heartbeat lists them. Beyond it, what cannot be repaired stays a gap."""
_TOO_LARGE: Final = "the event is larger than the broker takes"

log = structlog.get_logger("approvaltrail.producer")


@dataclass(slots=True)
class RunningRepair:
    """A repair on its way."""

    repair: Repair
    first: int
    """The first number that the journal still holds of the range."""
    after: int
    """The last number that was sent again, or passed over."""
    last: int
    sent: int = 0

    @classmethod
    def of(cls, repair: Repair, journal: Journal) -> Self:
        """Begin a repair, within what the journal holds: a request may name any range."""
        oldest = journal.oldest_sequence or journal.last_sequence + 1
        first = max(repair.first_sequence, oldest)
        return cls(
            repair=repair,
            first=first,
            after=first - 1,
            last=min(repair.last_sequence, journal.last_sequence),
        )


class Delivery:
    """Sends from one journal; used in the relay's thread alone."""

    def __init__(self, journal: Journal, metrics: RelayMetrics, chunk_events: int) -> None:
        self.journal = journal
        self._metrics = metrics
        self._chunk = chunk_events
        self._reader: JournalDatabase | None = None
        self.repairs: list[Repair] = []
        """Ranges to be sent again, the oldest request first."""
        self._repair: RunningRepair | None = None
        self.closing_sent = False
        """Whether the last word on this journal was said."""

    @property
    def has_work(self) -> bool:
        """Whether events or seals wait."""
        return not self.journal.delivered

    @property
    def over(self) -> bool:
        """Whether a journal that takes no events is delivered and sealed to its end."""
        journal = self.journal
        sealed = journal.sealed.sequence >= journal.last_sequence
        return not journal.takes_events and journal.delivered and sealed

    def oldest_pending_at(self) -> int | None:
        """Return the time (µs) of the oldest undelivered event, or None if there is none."""
        if not self.journal.pending:
            return None
        rows = self._read(self.journal.progress.relayed_sequence, self.journal.last_sequence, 1)
        return int(rows[0][1]) if rows else None

    async def step(self, link: Link) -> int:
        """Send the next chunk of events, and the seals that are due; return how many events.

        The position moves only when every event of the chunk is acknowledged or declared lost.

        Raises:
            RelayError: the broker did not take it all.
            sqlite3.Error: the journal cannot be read now.
        """
        after, last = self.journal.progress.relayed_sequence, self.journal.last_sequence
        sent = 0
        if last > after:
            last = min(last, after + self._chunk)
            rows, lost = self._next(after, last)
            too_large = await link.send_events(self.journal.producer_id, rows)
            lost += tuple(_range(row, _TOO_LARGE) for row in too_large)
            sent = len(rows) - len(too_large)
            self._isolate(lost)
            self._metrics.delivered.inc(sent)
            self.journal.progress.advance(last)
            self.journal.write_hint()
        await self._send_seals(link)
        return sent

    async def repair_step(self, link: Link) -> bool:
        """Send the next chunk of what is to be sent again; return whether there is more.

        One chunk at a time, so that a long repair does not hold up new events; errors as `step`.
        """
        if self._repair is None:
            if not self.repairs:
                return False
            self._repair = RunningRepair.of(self.repairs.pop(0), self.journal)
        running = self._repair
        if running.after < running.last:
            last = min(running.last, running.after + self._chunk)
            rows = list(intact_rows(self._open(), running.after, last))
            await link.send_events(self.journal.producer_id, rows)
            self._give_up(missing_ranges(rows, running.after, last, _DAMAGED))
            running.after, running.sent = last, running.sent + len(rows)
            self._metrics.repaired.inc(len(rows))
        if running.after >= running.last:
            self._repaired(running)
            self._repair = None
        return True

    def _repaired(self, running: RunningRepair) -> None:
        repair = running.repair
        log.info(
            Log.REPAIR_SERVED,
            producer_id=self.journal.producer_id,
            first_sequence=repair.first_sequence,
            last_sequence=repair.last_sequence,
            sent=running.sent,
        )
        missing = repair.last_sequence - repair.first_sequence + 1 - running.sent
        discarded = min(running.first - 1, repair.last_sequence, self.journal.last_sequence)
        if discarded >= repair.first_sequence:
            self._give_up([_lost(repair.first_sequence, discarded, _DISCARDED)])
        if missing:
            log.warning(
                Log.REPAIR_IMPOSSIBLE,
                producer_id=self.journal.producer_id,
                events_missing=missing,
            )
        self.journal.progress.repaired(repair.requested_at)

    def close(self) -> None:
        """Close the reading connection."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _next(self, after: int, last: int) -> tuple[list[JournalRow], tuple[SequenceRange, ...]]:
        try:
            rows = self._read(after, last, self._chunk)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            rows = list(intact_rows(self._open(), after, last))
        intact = [row for row in rows if is_intact(row)]
        if len(intact) == last - after:
            return intact, ()
        return intact, missing_ranges(intact, after, last, _DAMAGED)

    async def _send_seals(self, link: Link) -> None:
        # looked at once: the writer may seal meanwhile, and a seal not seen here is not passed over
        progress, sealed = self.journal.progress, self.journal.sealed
        if progress.relayed_seal >= sealed.number:
            return
        seals = self._open().seals(
            progress.relayed_seal, progress.relayed_sequence, _SEALS_AT_A_TIME
        )
        if seals:
            values = [body for _, body in seals]
            await link.send_messages(topics.SEALS, self.journal.producer_id, values)
            progress.advance_seal(seals[-1][0])
        elif progress.relayed_sequence >= sealed.sequence:
            progress.advance_seal(sealed.number)  # damage took them: none can be sent

    def _give_up(self, lost: Sequence[SequenceRange]) -> None:
        """Declare numbers lost that were asked for and cannot be sent again.

        They were acknowledged once. Should they be stored after all, they do not count as lost.
        """
        for entry in lost:
            if len(self.journal.progress.lost) < _MOST_LOST_RANGES:
                self.journal.progress.lose(entry)

    def _isolate(self, lost: Sequence[SequenceRange]) -> None:
        for entry in lost:
            count = entry.last_sequence - entry.first_sequence + 1
            self._metrics.isolated.labels(
                "too_large" if entry.reason == _TOO_LARGE else "damaged"
            ).inc(count)
            log.error(
                Log.EVENT_ISOLATED,
                journal=str(self.journal.path.file),
                producer_id=self.journal.producer_id,
                first_sequence=entry.first_sequence,
                last_sequence=entry.last_sequence,
                reason=entry.reason,
            )
            self.journal.progress.lose(entry)

    def _read(self, after: int, last: int, limit: int) -> list[JournalRow]:
        return self._open().rows(after, last, limit)

    def _open(self) -> JournalDatabase:
        if self._reader is None:
            self._reader = self.journal.reader()
        return self._reader


def _range(row: JournalRow, reason: str) -> SequenceRange:
    return _lost(row[0], row[0], reason)


def _lost(first: int, last: int, reason: str) -> SequenceRange:
    return SequenceRange(first_sequence=first, last_sequence=last, reason=reason)
