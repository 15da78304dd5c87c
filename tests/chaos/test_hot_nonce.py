"""One nonce is presented a hundred thousand times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from tests.chaos.oracle import EVERYTHING
from tests.support.stored import Message

from approvaltrail.consumers.block import BlockBuilder
from approvaltrail.schemas.contract import event_contract
from approvaltrail.schemas.encoding import encode_event, microseconds, producer_stamp, stamp
from approvaltrail.schemas.events import ApprovalEvent, EventType, NonceTrust, Reason
from approvaltrail.schemas.identity import new_event_id, new_producer_id
from approvaltrail.store.answers import TimeRange
from approvaltrail.store.connection import Store, open_store
from approvaltrail.store.migrations import migrate
from approvaltrail.store.queries import Queries
from approvaltrail.store.writing import insert_events

NONCE = "presented-again-and-again"
PRESENTATIONS = 100_000
BLOCK = 25_000
SHOWN = 100
"""First and last reuses that a trail holds."""
STARTED = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=20)


@dataclass
class Presented:
    """Builds the life of the nonce."""

    producer: bytes
    sequence: int = 0

    def message(self, event_type: EventType, at: datetime, reason: Reason | None = None) -> Message:
        """Return the next event, encoded."""
        self.sequence += 1
        event = ApprovalEvent(
            event_id=new_event_id(),
            event_type=event_type,
            reason=reason,
            occurred_at=at,
            nonce=NONCE,
            nonce_trust=NonceTrust.VERIFIED,
            tenant="acme",
            tool="tidb_delete_cluster",
            target="prod-7",
            principal="ana@corp",
        )
        value = stamp(self.sequence, microseconds(at), self.producer) + encode_event(event)
        return Message(value, self.sequence)

    def life(self) -> Iterator[Message]:
        """Yield issuance, acceptance, and every presentation after it."""
        yield self.message(EventType.ISSUED, STARTED)
        yield self.message(EventType.ACCEPTED, STARTED + timedelta(seconds=1))
        for number in range(1, PRESENTATIONS + 1):
            at = STARTED + timedelta(seconds=1, milliseconds=500 * number)
            yield self.message(EventType.REPLAYED, at, Reason.ALREADY_USED)


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    """Give a store that holds the nonce's life."""
    with open_store(database) as opened:
        migrate(opened)
        builder = BlockBuilder(event_contract())
        messages = list(Presented(producer_stamp(new_producer_id(), "tidb-mcp", "pod-1")).life())
        for first in range(0, len(messages), BLOCK):
            block = builder.build(messages[first : first + BLOCK])
            insert_events(opened, block.data, block.fence, block.contract.fingerprint)
        yield opened


@pytest.mark.timeout(180)
def test_a_nonce_presented_a_hundred_thousand_times_has_a_bounded_and_exact_trail(
    store: Store,
) -> None:
    """The trail shows the first and the last hundred, numbered, and counts all; so do pages."""
    trail = Queries(store).trail(NONCE, EVERYTHING)
    assert trail.reuses_total == PRESENTATIONS
    assert [reuse.number for reuse in trail.reuses] == [
        *range(1, SHOWN + 1),
        *range(PRESENTATIONS - SHOWN + 1, PRESENTATIONS + 1),
    ]
    assert trail.issuance is not None
    assert trail.acceptance is not None
    whole = TimeRange(STARTED, STARTED + timedelta(hours=24))
    page = Queries(store).reuses(whole, EVERYTHING, limit=SHOWN)
    assert (page.total, page.tokens, len(page.reuses)) == (PRESENTATIONS, 1, SHOWN)
    assert [reuse.number for reuse in page.reuses] == list(
        range(PRESENTATIONS, PRESENTATIONS - SHOWN, -1)
    )
    assert {reuse.total for reuse in page.reuses} == {PRESENTATIONS}
    last = Queries(store).reuses(whole, EVERYTHING, limit=10, offset=PRESENTATIONS - 10)
    assert [reuse.number for reuse in last.reuses] == list(range(10, 0, -1))
