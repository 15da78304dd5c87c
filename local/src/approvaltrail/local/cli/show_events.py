"""A page of events as a table."""

from __future__ import annotations

from rich.text import Text

from approvaltrail.local.cli.output import EVENT_STYLES, say, table
from approvaltrail.local.cli.text import cell, middle
from approvaltrail.local.cli.times import iso
from approvaltrail.schemas.events import RecordedEvent
from approvaltrail.store.answers import EventPage


def show(page: EventPage) -> None:
    """Print the events and the exact total."""
    if page.events:
        columns = ("time (UTC)", "event", "tenant", "tool", "target", "principal", "from", "nonce")
        table(columns, (_row(stored.event) for stored in page.events))
    say(f"{len(page.events)} of {page.total} events shown")


def what(event: RecordedEvent) -> Text:
    """Return type and reason or outcome, coloured by type."""
    detail = event.reason or event.outcome
    words = event.event_type.value + (f": {detail.value}" if detail else "")
    return cell(words, EVENT_STYLES[event.event_type])


def _row(event: RecordedEvent) -> list[Text]:
    nonce = middle(event.nonce, 24) if event.nonce else "–"
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
