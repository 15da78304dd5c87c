"""Set messages aside that cannot be stored: into the dead-letter topic, and on record in the store.

The topic keeps the message as it came: key, value and headers, with headers of ours on cause and
position beside them. The store keeps a row by position, so that completeness counts it and pages
show it. A message's offset moves only when it stands in both.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from aiokafka.structs import TopicPartition

from approvaltrail.consumers.kafka_options import producer_options
from approvaltrail.consumers.metrics import SinkMetrics
from approvaltrail.consumers.settings import SinkSettings
from approvaltrail.consumers.sorting import Rejected
from approvaltrail.consumers.writer import StoreWriter, Wanted
from approvaltrail.schemas import messages as names
from approvaltrail.schemas.topics import DEAD, prefixed
from approvaltrail.store.connection import Store
from approvaltrail.store.writing import DeadLetterRow, insert_dead_letters

_AT_ONCE = 500
"""Dead letters on their way together."""
_log = structlog.stdlib.get_logger(__name__)


class DeadLetters:
    """Delivers dead letters; says which partitions have to wait because theirs cannot be."""

    def __init__(self, writer: StoreWriter, settings: SinkSettings, metrics: SinkMetrics) -> None:
        self._writer = writer
        self._settings = settings
        self._metrics = metrics
        self._topic = prefixed(DEAD, settings.topic_prefix)
        self._producer: AIOKafkaProducer | None = None
        self._connecting = asyncio.Lock()

    async def deliver(
        self, rejected: Sequence[Rejected], wanted: Wanted
    ) -> dict[TopicPartition, tuple[int, str]]:
        """Set these aside; return, for partitions that have to wait, the offset and the reason."""
        waiting: dict[TopicPartition, tuple[int, str]] = {}
        ordered = sorted(rejected, key=lambda one: (one.message.partition, one.message.offset))
        for start in range(0, len(ordered), _AT_ONCE):
            part = [
                one for one in ordered[start : start + _AT_ONCE] if _partition(one) not in waiting
            ]
            sent = await self._send(part, waiting)
            if sent:
                rows = [_row(one) for one in sent]
                await self._writer.until_done(partial(_write, rows=rows), wanted=wanted)
                self._count(sent)
        return waiting

    async def close(self) -> None:
        """Close the connection to the dead-letter topic."""
        await self._discard_producer()

    async def _send(
        self, letters: Sequence[Rejected], waiting: dict[TopicPartition, tuple[int, str]]
    ) -> list[Rejected]:
        """Send all together; then, one by one, those that failed: each may be the only bad one."""
        failures = await asyncio.gather(*(self._try(letter) for letter in letters))
        if any(failures):
            await self._discard_producer()
        sent = []
        for letter, failure in zip(letters, failures, strict=True):
            partition = _partition(letter)
            if partition in waiting:
                continue
            again = await self._try(letter) if failure else None
            if again:
                await self._discard_producer()
                waiting[partition] = (letter.message.offset, again)
                _log.error(
                    "dead_letter_undeliverable",
                    topic=partition.topic,
                    partition=partition.partition,
                    offset=letter.message.offset,
                    cause=letter.cause,
                    why=again,
                )
            else:
                sent.append(letter)
        return sent

    async def _try(self, letter: Rejected) -> str | None:
        """Send one dead letter; return in a sentence why it could not be."""
        message = letter.message
        try:
            async with asyncio.timeout(self._settings.dead_letter_timeout_seconds):
                producer = await self._connected()
                await producer.send_and_wait(
                    self._topic, message.value, key=sendable_key(message), headers=_headers(letter)
                )
        except UnknownTopicOrPartitionError:
            return f"the topic {self._topic} does not exist: run `approvaltrail migrate`"
        except TopicAuthorizationFailedError:
            return f"this user may not write to {self._topic}: grant it WRITE there"
        except MessageSizeTooLargeError:
            return (
                f"the message is larger than {self._topic} takes: raise its max.message.bytes "
                "above that of the topic it came from"
            )
        except (KafkaError, TimeoutError, OSError) as error:
            return (
                f"{self._topic} did not take the message ({type(error).__name__}): check that the "
                "topic exists, may be written to and takes messages of this size"
            )
        return None

    async def _connected(self) -> AIOKafkaProducer:
        async with self._connecting:
            if self._producer is None:
                producer = AIOKafkaProducer(**producer_options(self._settings))
                try:
                    await producer.start()
                except BaseException:
                    await producer.stop()
                    raise
                self._producer = producer
            return self._producer

    async def _discard_producer(self) -> None:
        """Let go of a producer: after a failed send, aiokafka's own count of sequences is wrong."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(KafkaError, TimeoutError, OSError):
                async with asyncio.timeout(self._settings.dead_letter_timeout_seconds):
                    await producer.stop()

    def _count(self, letters: Sequence[Rejected]) -> None:
        counts: dict[tuple[str, str], int] = defaultdict(int)
        for letter in letters:
            counts[letter.message.topic, letter.cause.value] += 1
        for (topic, cause), count in counts.items():
            self._metrics.dead_letters.labels(topic, cause).inc(count)
            _log.warning("messages_dead_lettered", topic=topic, cause=cause, messages=count)


def sendable_key(message: Any) -> bytes | None:
    """Return a message's key; an empty one where there is no value either: aiokafka wants one."""
    if message.key is None and message.value is None:
        return b""
    key: bytes | None = message.key
    return key


def _partition(letter: Rejected) -> TopicPartition:
    return TopicPartition(letter.message.topic, letter.message.partition)


def _headers(letter: Rejected) -> list[tuple[str, bytes | None]]:
    message = letter.message
    ours = {
        names.HEADER_CAUSE: letter.cause.value,
        names.HEADER_DETAIL: letter.detail,
        names.HEADER_TOPIC: message.topic,
        names.HEADER_PARTITION: str(message.partition),
        names.HEADER_OFFSET: str(message.offset),
        names.HEADER_AT: datetime.now(UTC).isoformat(timespec="microseconds"),
    }
    originals = [(name, value) for name, value in message.headers if name not in ours]
    return [*originals, *((name, text.encode()) for name, text in ours.items())]


def _row(letter: Rejected) -> DeadLetterRow:
    message = letter.message
    owner = names.owner_of(message.headers)
    return DeadLetterRow(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        cause=letter.cause,
        detail=letter.detail,
        producer_id=owner[0] if owner else None,
        sequence=owner[1] if owner else None,
        dead_lettered_at=datetime.now(UTC),
    )


def _write(store: Store, *, rows: Sequence[DeadLetterRow]) -> None:
    insert_dead_letters(store, rows)
