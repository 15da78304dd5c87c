"""Puts events into a store the way the sink does: undecoded, in a fenced block."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from approvaltrail.consumers.block import BlockBuilder
from approvaltrail.schemas.contract import event_contract
from approvaltrail.schemas.encoding import encode_recorded
from approvaltrail.schemas.events import RecordedEvent
from approvaltrail.schemas.messages import Heartbeat, Probe, ProducerState
from approvaltrail.store.connection import Store
from approvaltrail.store.writing import insert_events, insert_heartbeats


@dataclass(frozen=True)
class Message:
    """A Kafka message as far as a block looks at it."""

    value: bytes
    offset: int
    partition: int = 0


def store_events(store: Store, events: Iterable[RecordedEvent]) -> None:
    """Store events."""
    messages = [Message(encode_recorded(event), event.sequence) for event in events]
    block = BlockBuilder(event_contract()).build(messages)
    insert_events(store, block.data, block.fence, block.contract.fingerprint)


def heartbeat_of(events: list[RecordedEvent], at: datetime, **changed: object) -> Heartbeat:
    """Return what the producer of these events says of itself once all are delivered."""
    last = max(events, key=lambda one: one.sequence)
    values: dict[str, object] = {
        "producer_id": last.producer_id,
        "service": last.service,
        "instance": last.instance,
        "sent_at": at,
        "started_at": min(one.recorded_at for one in events),
        "state": ProducerState.LIVE,
        "last_sequence": last.sequence,
        "last_recorded_at": last.recorded_at,
        "relayed_sequence": last.sequence,
        "journal_bytes": 4_000,
        "journal_limit_bytes": 1_000_000,
        "ledger_probe": Probe.OK,
        "ledger_probe_at": at,
    }
    return Heartbeat(**values | changed)


def store_story(store: Store, events: list[RecordedEvent], now: datetime) -> None:
    """Store a whole journal and its heartbeat, so that the store is complete up to now."""
    store_events(store, events)
    insert_heartbeats(store, [heartbeat_of(events, now)])
