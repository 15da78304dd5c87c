"""A poison message: a recorded event that is damaged on its way to the topic."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from approvaltrail.local.broker.ports import free_ports
from approvaltrail.local.smoke.evidence import Number
from approvaltrail.local.smoke.server import producer_settings
from approvaltrail.local.smoke.topic import RawMessage
from approvaltrail.local.stack import Servers
from approvaltrail.producer import Producer
from approvaltrail.producer.database import JournalDatabase
from approvaltrail.producer.directory import JournalDirectory
from approvaltrail.schemas.events import ApprovalEvent, EventType, NonceTrust, Reason
from approvaltrail.schemas.identity import new_event_id
from approvaltrail.schemas.messages import event_headers

_LOST_BYTES: Final = 1


async def record_poison(servers: Servers, journals: Path, nonce: str) -> tuple[Number, RawMessage]:
    """Record one event in a journal whose producer never reaches a broker.

    Returns its number, and its message as a damaged network would deliver it: cut short.
    """
    (nowhere,) = free_ports(1)
    settings = producer_settings(servers, journals)
    unreachable = settings.model_copy(
        update={
            "kafka_bootstrap_servers": f"127.0.0.1:{nowhere}",
            "service": "smoke-poison",
            "relay_connect_seconds": 0.5,
        }
    )
    producer = Producer(unreachable)
    producer.start()
    recorded = await producer.record(
        ApprovalEvent(
            event_id=new_event_id(),
            event_type=EventType.REFUSED,
            occurred_at=datetime.now(UTC),
            reason=Reason.BAD_SIGNATURE,
            nonce=nonce,
            nonce_trust=NonceTrust.CLAIMED,
            tool="tidb_delete_cluster",
        )
    )
    await producer.close(timeout_seconds=0)
    body = _only_body(journals)
    message = RawMessage(
        partition=0,
        offset=-1,
        key=nonce.encode(),
        value=body[:-_LOST_BYTES],
        headers=tuple(event_headers(recorded.producer_id, recorded.sequence)),
    )
    return (recorded.producer_id, recorded.sequence), message


def _only_body(journals: Path) -> bytes:
    (journal,) = JournalDirectory(journals).every_journal()
    database = JournalDatabase.open_to_read(journal)
    try:
        return next(database.bodies(0))[0]
    finally:
        database.close()
