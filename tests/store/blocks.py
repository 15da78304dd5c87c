"""Blocks of events as the sink makes them, built slowly and plainly."""

from __future__ import annotations

import copy
import io
import itertools
import secrets
from typing import TYPE_CHECKING

import fastavro

from approvaltrail.schemas.contract import HEADER_BYTES, event_contract
from approvaltrail.schemas.encoding import encode_recorded, varint
from approvaltrail.store.writing import insert_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from approvaltrail.schemas.events import RecordedEvent
    from approvaltrail.store.connection import Store

_SYNC_BYTES = 16


def block_of(bodies: Sequence[bytes], fence: int) -> bytes:
    """Wrap encoded records (without their headers) into one Avro container block."""
    schema = copy.deepcopy(event_contract().schema)
    schema["fields"] += [
        {"name": "kafka_partition", "type": "int"},
        {"name": "kafka_offset", "type": "long"},
        {"name": "fence", "type": "long"},
    ]
    stream = io.BytesIO()
    fastavro.writer(stream, schema, [])
    head = stream.getvalue()
    positions = (varint(3) + varint(offset) + varint(fence) for offset in itertools.count())
    data = b"".join(body + position for body, position in zip(bodies, positions, strict=False))
    return head + varint(len(bodies)) + varint(len(data)) + data + head[-_SYNC_BYTES:]


def insert_bodies(store: Store, bodies: Sequence[bytes], **options: object) -> None:
    """Insert encoded records through the guarded passthrough."""
    fence = secrets.randbits(62)
    insert_events(store, block_of(bodies, fence), fence, event_contract().fingerprint, **options)


def insert(store: Store, events: Iterable[RecordedEvent]) -> None:
    """Insert events through the guarded passthrough."""
    insert_bodies(store, [encode_recorded(event)[HEADER_BYTES:] for event in events])
