"""What a producer says of its health, for an embedding server's own endpoints."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from approvaltrail.producer.relay import RelayState
from approvaltrail.schemas.messages import Probe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from approvaltrail.producer.heartbeats import Reports
    from approvaltrail.producer.journal import Journal
    from approvaltrail.producer.relay import Relay

_LATE_SECONDS: Final = 30.0
_HIGH_FILL: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReason:
    """One thing that is not as it should be: a stable code and a sentence."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerHealth:
    """Whether the producer works, and what is wrong with it.

    Not live: restart the process. Not ready: nothing can be recorded and the gate is closed.
    Degraded: recording works, something else does not.
    """

    live: bool
    ready: bool
    degraded: bool
    reasons: tuple[HealthReason, ...]
    producer_id: str | None = None
    last_sequence: int = 0
    pending: int = 0
    lag_seconds: float = 0.0
    """Age of the oldest event that the broker has not acknowledged."""
    journal_fill: float = 0.0
    """Used share of the journal's limit, 0 to 1."""
    unrecorded_refusals: int = 0
    scrubbed_values: int = 0
    """Values from which a token was removed since the start."""
    ledger_probe: Probe = Probe.NONE
    ledger_probe_at: datetime | None = None
    relay_state: str = RelayState.STOPPED.value


NOT_STARTED: Final = ProducerHealth(
    live=False,
    ready=False,
    degraded=True,
    reasons=(HealthReason(code="not_started", text="the producer is not started, or is closed"),),
)


def health_of(
    journal: Journal, adopted: list[Journal], relay: Relay, reports: Reports, now: int
) -> ProducerHealth:
    """Look at a running producer; `now` in µs since the epoch."""
    trouble = journal.trouble
    oldest = relay.oldest_pending_at
    pending = journal.pending + sum(other.pending for other in adopted)
    lag = max(0.0, (now - oldest) / 1_000_000) if oldest is not None and pending else 0.0
    live = journal.writer_alive and relay.alive
    reasons = [*_dead(journal, relay)]
    if trouble:
        reasons.append(HealthReason(code=trouble.cause.value, text=str(trouble)))
    worries = [*_worries(journal, adopted, relay, reports, lag)]
    return ProducerHealth(
        live=live,
        ready=live and trouble is None,
        degraded=bool(reasons or worries),
        reasons=(*reasons, *worries),
        producer_id=journal.producer_id,
        last_sequence=journal.last_sequence,
        pending=pending,
        lag_seconds=lag,
        journal_fill=journal.space.fill,
        unrecorded_refusals=journal.unrecorded.total,
        scrubbed_values=reports.scrubbed_values,
        ledger_probe=reports.ledger_probe,
        ledger_probe_at=reports.ledger_probe_at,
        relay_state=relay.state.value,
    )


def _dead(journal: Journal, relay: Relay) -> Iterator[HealthReason]:
    if not journal.writer_alive:
        yield HealthReason(code="writer_dead", text="the journal's writer has ended: restart")
    if not relay.alive:
        yield HealthReason(code="relay_dead", text="the relay has ended: restart")


def _worries(
    journal: Journal, adopted: list[Journal], relay: Relay, reports: Reports, lag: float
) -> Iterator[HealthReason]:
    if relay.failing_since is not None:
        seconds = time.monotonic() - relay.failing_since
        yield HealthReason(
            code="relay_retrying",
            text=f"nothing was delivered for {seconds:.0f} s: {relay.last_error}",
        )
    if lag > _LATE_SECONDS:
        yield HealthReason(code="relay_late", text=f"events wait for the broker for {lag:.0f} s")
    if journal.space.fill > _HIGH_FILL:
        yield HealthReason(
            code="journal_filling", text=f"{journal.space.fill:.0%} of the journal is used"
        )
    if journal.unrecorded.total:
        yield HealthReason(
            code="refusals_unrecorded",
            text=f"{journal.unrecorded.total} refusals are counted and not yet recorded",
        )
    if reports.ledger_probe is Probe.FAILING:
        yield HealthReason(code="ledger_failing", text="the last look at the ledger failed")
    for one in (journal, *adopted):
        if one.progress.lost:
            yield HealthReason(
                code="events_lost",
                text=f"journal {one.producer_id} has declared numbers lost",
            )
