"""A page of events as a table."""

from __future__ import annotations

from rich.text import Text

from approvaltrail.dashboard.words import REASONS
from approvaltrail.local.cli.output import EVENT_STYLES, say, table
from approvaltrail.local.cli.text import cell, middle
from approvaltrail.local.cli.times import iso
from approvaltrail.schemas.events import EventType, NonceTrust, RecordedEvent
from approvaltrail.store.answers import EventPage


def show(page: EventPage, folder: str = "") -> None:
    """Print the events and the exact total."""
    if page.events:
        columns = ("time (UTC)", "event", "tenant", "tool", "target", "principal", "from", "nonce")
        table(columns, (_row(stored.event) for stored in page.events))
    say(f"{len(page.events)} of {page.total} events shown")
    if not page.total:
        say("no event matches; look further back with --last 7d, or leave a filter out")
    verified = (one.event for one in page.events if one.event.nonce_trust is NonceTrust.VERIFIED)
    one = next(verified, None)
    if one is not None:
        say(f"next: approvaltrail trail {one.nonce}{folder}")


def what(event: RecordedEvent) -> Text:
    """Return type and reason or outcome, coloured by type."""
    words = event.event_type.value
    if event.reason is not None and event.event_type is EventType.REFUSED:
        words += f": {REASONS[event.reason]}"
    elif event.outcome is not None:
        words += f": {event.outcome.value}"
    return cell(words, EVENT_STYLES[event.event_type])


def _row(event: RecordedEvent) -> list[Text]:
    nonce = event.nonce or "–"
    mark = "" if event.nonce_trust.value in {"verified", "none"} else " (claimed)"
    return [
        cell(iso(event.occurred_at)),
        what(event),
        cell(event.tenant or "–"),
        cell(event.tool),
        cell(middle(event.target or "–", 32)),
        cell(middle(event.principal or "–", 32)),
        cell(event.client_address or "–"),
        cell(nonce + mark),
    ]
