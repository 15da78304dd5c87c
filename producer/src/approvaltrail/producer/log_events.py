"""Every structlog event that the producer logs, and what to make of it."""

from __future__ import annotations

from enum import StrEnum


class Log(StrEnum):
    """Event names; the values beside them are plain keys, never payloads."""

    PRODUCER_STARTED = "producer_started"
    PRODUCER_CLOSED = "producer_closed"
    """The last event of a producer: `pending` events wait on disk for the next start."""
    PRODUCER_FORKED = "producer_forked"
    """A forked child opened a journal of its own."""

    JOURNAL_CREATED = "journal_created"
    JOURNAL_RESUMED = "journal_resumed"
    JOURNAL_ADOPTED = "journal_adopted"
    """A journal left behind, or from another machine, is sent on and closed."""
    JOURNAL_DAMAGED = "journal_damaged"
    """A damaged journal was set aside; nobody can send the `lost` numbers. Look at the disk."""
    JOURNAL_SKIPPED = "journal_skipped"
    """A journal cannot be opened now: another program has it, or its rights or disk are in the way.
    What it holds waits for the next start. Act on the error."""
    JOURNAL_UNAVAILABLE = "journal_unavailable"
    """Nothing can be recorded: the gate is closed. Act on the message."""
    JOURNAL_RECOVERED = "journal_recovered"
    JOURNAL_EXPIRED = "journal_expired"
    """A finished journal past its retention was removed."""
    UNRECORDED_SUMMED = "unrecorded_refusals_summed"
    """Refusals counted while the journal was unavailable are now recorded in sum."""
    WRITER_FAILED = "journal_writer_failed"
    """A fault in the writer itself; the batch failed and recording goes on."""

    RELAY_CONNECTED = "relay_connected"
    RELAY_RETRYING = "relay_retrying"
    """The broker failed; a new client replays from the confirmed position after `wait_seconds`."""
    RELAY_STOPPED = "relay_stopped"
    EVENT_ISOLATED = "relay_event_isolated"
    """One event is damaged in the journal; its number is declared lost, the rest is sent."""
    REPAIR_SERVED = "repair_served"
    REPAIR_IMPOSSIBLE = "repair_impossible"
    """Events of a requested range are no longer in the journal: they are declared lost."""
    REPAIRS_UNREADABLE = "repairs_unreadable"
    """Requests for repair cannot be read; recording and sending go on."""
