"""The table of events, each linked to the trail of its nonce where a signature vouches for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from approvaltrail.dashboard import pieces, words
from approvaltrail.dashboard.markup import Child, Markup, element, long_value
from approvaltrail.dashboard.pieces import Column
from approvaltrail.dashboard.view import View
from approvaltrail.schemas.events import NonceTrust, RecordedEvent
from approvaltrail.store.answers import StoredEvent

_COLUMNS = (
    Column("Time (UTC)", "at-nowrap"),
    Column("Event", "at-outcome"),
    Column("Nonce", "at-nowrap"),
    Column("Tenant", "at-tenant"),
    Column("Tool · target", "at-aim"),
    Column("Caller", "at-who"),
    Column("Address", "at-address"),
)


def build(name: str, events: Iterable[StoredEvent], view: View) -> Markup:
    """Build the table, in the order given."""
    rows = []
    for stored in events:
        claimed = stored.event.nonce_trust is NonceTrust.CLAIMED
        rows.append(("at-hatched" if claimed else None, _cells(stored.event, view)))
    return pieces.table(name, _COLUMNS, rows)


def _cells(event: RecordedEvent, view: View) -> Sequence[Child]:
    return (
        pieces.instant(event.occurred_at),
        pieces.outcome(event),
        _nonce(event, view),
        element("bdi", event.tenant) if event.tenant else "—",
        pieces.aim(event),
        pieces.who(event, pieces.SHORT_NAME),
        _address(event),
    )


def _nonce(event: RecordedEvent, view: View) -> Child:
    if event.nonce is None:
        return "—"
    if event.nonce_trust is NonceTrust.VERIFIED:
        return long_value(event.nonce, href=view.href("trail", nonce=event.nonce))
    return pieces.two_lines(long_value(event.nonce), "claimed, not linked")


def _address(event: RecordedEvent) -> Child:
    if event.client_address is None:
        return "—"
    return pieces.two_lines(
        long_value(event.client_address),
        words.address_trust(event.address_source),
    )
