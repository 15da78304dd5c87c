"""Raw messages of a topic: read all of them, and send some again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

_POLL_MS = 500
_AT_ONCE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class RawMessage:
    """A message as it lies in the topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]

    def contents(self) -> bytes:
        """Return everything that it holds, for a search."""
        parts = [self.key or b"", self.value or b""]
        for name, value in self.headers:
            parts += [name.encode(), value or b""]
        return b"\n".join(parts)


async def read_all(bootstrap_servers: str, topic: str) -> list[RawMessage]:
    """Return what the topic holds now, from its beginning."""
    found: list[RawMessage] = []
    async with _reader(bootstrap_servers, topic) as consumer:
        partitions = list(consumer.assignment())
        ends = await consumer.end_offsets(partitions)
        while any([await consumer.position(one) < ends[one] for one in partitions]):
            batches = await consumer.getmany(timeout_ms=_POLL_MS, max_records=_AT_ONCE)
            for messages in batches.values():
                found += map(_raw, messages)
    return found


@contextlib.asynccontextmanager
async def _reader(bootstrap_servers: str, *topics: str) -> AsyncIterator[AIOKafkaConsumer]:
    """Read without a group: every partition of the topics is this consumer's."""
    consumer = AIOKafkaConsumer(
        *topics,
        bootstrap_servers=bootstrap_servers,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        with contextlib.suppress(asyncio.CancelledError):  # of a task of its own, when cut short
            await consumer.stop()


def _raw(message: Any) -> RawMessage:
    return RawMessage(
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        headers=tuple(message.headers),
    )


async def send(bootstrap_servers: str, topic: str, messages: Sequence[RawMessage]) -> None:
    """Send messages as they are, each to the partition that it names, and wait for all."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, acks="all")
    await producer.start()
    try:
        futures = [
            await producer.send(
                topic,
                message.value,
                key=message.key,
                partition=message.partition,
                headers=list(message.headers),
            )
            for message in messages
        ]
        for future in futures:
            await future
    finally:
        await producer.stop()


async def lag(bootstrap_servers: str, topics: Sequence[str], group: str) -> int:
    """Return how many messages of the topics a consumer group has not committed yet."""
    async with _reader(bootstrap_servers, *topics) as consumer:
        ends = await consumer.end_offsets(list(consumer.assignment()))
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        committed = await admin.list_consumer_group_offsets(group)
    finally:
        await admin.close()
    return sum(
        end - (committed[one].offset if one in committed else 0) for one, end in ends.items()
    )
