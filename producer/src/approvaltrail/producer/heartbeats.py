"""What a producer says of each of its journals every few seconds."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from approvaltrail.schemas.encoding import instant_of
from approvaltrail.schemas.messages import GateState, Heartbeat, Probe, ProducerState

if TYPE_CHECKING:
    from approvaltrail.producer.journal import Journal


@dataclass(slots=True)
class Reports:
    """What others told the producer, for its heartbeats and its health."""

    ledger_probe: Probe = Probe.NONE
    ledger_probe_at: datetime | None = field(default=None)
    scrubbed_values: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def scrubbed(self, values: int) -> None:
        """Take note that a token was removed from so many values."""
        with self._lock:
            self.scrubbed_values += values

    def ledger(self, probe: Probe) -> None:
        """Take note of the last look at the ledger."""
        self.ledger_probe = probe
        self.ledger_probe_at = datetime.now(UTC)


def heartbeat_of(
    journal: Journal, reports: Reports, *, now: int, limit_bytes: int, closed: bool
) -> Heartbeat:
    """Build the heartbeat of one journal; `now` in µs since the epoch."""
    trouble = journal.trouble if journal.takes_events else None
    last_recorded_at = journal.last_recorded_at
    return Heartbeat(
        producer_id=journal.producer_id,
        service=journal.state.service,
        instance=journal.state.instance,
        sent_at=instant_of(journal.settled_until(now)),  # before last_sequence is read
        started_at=instant_of(journal.opened_at),
        state=ProducerState.CLOSED if closed else ProducerState.LIVE,
        last_sequence=journal.last_sequence,
        last_recorded_at=instant_of(last_recorded_at) if last_recorded_at else None,
        relayed_sequence=journal.progress.relayed_sequence,
        pending=journal.pending,
        journal_bytes=journal.space.used,
        journal_limit_bytes=limit_bytes,
        gate_state=GateState.CLOSED if trouble else GateState.OPEN,
        gate_reason=trouble.cause.value if trouble else None,
        unrecorded_refusals=journal.unrecorded.total if journal.takes_events else 0,
        scrubbed_values=reports.scrubbed_values if journal.takes_events else 0,
        ledger_probe=reports.ledger_probe,
        ledger_probe_at=reports.ledger_probe_at,
        previous_producer_id=journal.state.previous_producer_id,
        lost_ranges=journal.progress.lost,
    )
