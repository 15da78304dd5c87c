"""Send dead letters again, as they were, after what kept them from being stored was mended.

It may be asked twice and may stop halfway: an event sent twice is counted once, and a message that
still cannot be stored becomes a dead letter again, at its new position.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from approvaltrail.consumers.dead_letters import sendable_key
from approvaltrail.consumers.errors import KafkaUnavailableError, RedriveError
from approvaltrail.consumers.kafka_options import producer_options
from approvaltrail.schemas import messages as names
from approvaltrail.schemas.kafka_settings import KafkaSettings
from approvaltrail.schemas.messages import DeadLetterCause
from approvaltrail.schemas.topics import DEAD, EVENTS, NAMES, prefixed
from approvaltrail.schemas.topics import topic as topic_described
from approvaltrail.store.connection import Store
from approvaltrail.store.writing import DeadLetterRow, insert_dead_letters

_AT_ONCE = 500
"""Messages sent together and then marked together."""
_READ_PATIENCE_SECONDS = 30.0
_OURS = frozenset(
    {
        names.HEADER_CAUSE,
        names.HEADER_DETAIL,
        names.HEADER_TOPIC,
        names.HEADER_PARTITION,
        names.HEADER_OFFSET,
        names.HEADER_AT,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveFilter:
    """Which dead letters to send again; None lets all through."""

    cause: DeadLetterCause | None = None
    topic: str | None = None
    """The topic that the message was read from, with its prefix."""
    partition: int | None = None
    offset: int | None = None
    limit: int | None = None
    """At most so many."""
    again: bool = False
    """Also those that were re-driven before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveReport:
    """What a redrive did, or would do."""

    read: int = 0
    """Dead letters looked at."""
    matched: int = 0
    """Those that the filter let through."""
    sent: int = 0
    """Those sent again; 0 in a dry run."""
    redriven_before: int = 0
    """Those left out because an earlier redrive sent them."""
    unreadable: int = 0
    """Messages in the dead-letter topic without a dead letter's headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Letter:
    """A dead letter as the topic keeps it."""

    record: Any = field(repr=False)
    topic: str
    partition: int
    offset: int
    cause: DeadLetterCause
    detail: str
    dead_lettered_at: datetime

    @classmethod
    def of(cls, record: Any) -> Self | None:
        """Read the headers; None when they are not a dead letter's."""
        found = dict(record.headers)
        try:
            return cls(
                record=record,
                topic=found[names.HEADER_TOPIC].decode(),
                partition=int(found[names.HEADER_PARTITION]),
                offset=int(found[names.HEADER_OFFSET]),
                cause=DeadLetterCause(found[names.HEADER_CAUSE].decode()),
                detail=found[names.HEADER_DETAIL].decode(),
                dead_lettered_at=datetime.fromisoformat(found[names.HEADER_AT].decode()),
            )
        except (KeyError, ValueError, AttributeError, TypeError):  # a header may have no value
            return None

    @property
    def position(self) -> tuple[str, int, int]:
        return self.topic, self.partition, self.offset

    def original_headers(self) -> list[tuple[str, bytes | None]]:
        return [(name, value) for name, value in self.record.headers if name not in _OURS]

    def marked(self, at: datetime) -> DeadLetterRow:
        owner = names.owner_of(self.record.headers)
        return DeadLetterRow(
            topic=self.topic,
            partition=self.partition,
            offset=self.offset,
            cause=self.cause,
            detail=self.detail,
            producer_id=owner[0] if owner else None,
            sequence=owner[1] if owner else None,
            dead_lettered_at=self.dead_lettered_at,
            redriven_at=at,
        )


async def redrive(
    settings: KafkaSettings,
    store: Store,
    chosen: RedriveFilter,
    *,
    dry_run: bool = False,
    on_progress: Callable[[RedriveReport], None] | None = None,
) -> RedriveReport:
    """Send the chosen dead letters to the topics they came from, and mark them as re-driven.

    Each goes out with its own bytes, key and headers, to its own partition. One position is sent
    once, however often the dead-letter topic has it.

    Args:
        settings: where Kafka is
        store: where dead letters are on record
        chosen: which of them
        dry_run: look and count, and send nothing
        on_progress: told what was done so far, after each group of messages

    Raises:
        KafkaUnavailableError: Kafka cannot be reached.
        RedriveError: a message could not be sent; what was sent before is marked.
        StoreError: the store cannot be asked or written.
    """
    done = set() if chosen.again else await asyncio.to_thread(_redriven, store)
    report = RedriveReport()
    async with _Sender(settings, store) as sender:
        async for records in _dead_letters(settings):
            group, report = _choose(records, chosen, done, report)
            if group and not dry_run:
                await sender.send(group)
                report = replace(report, sent=report.sent + len(group))
            if on_progress is not None:
                on_progress(report)
            if chosen.limit is not None and report.matched >= chosen.limit:
                break
    return report


def _choose(
    records: Sequence[Any],
    chosen: RedriveFilter,
    done: set[tuple[str, int, int]],
    report: RedriveReport,
) -> tuple[list[_Letter], RedriveReport]:
    letters = [_Letter.of(record) for record in records]
    readable = [letter for letter in letters if letter is not None]
    fitting = [letter for letter in readable if _fits(letter, chosen)]
    group: list[_Letter] = []
    left_out = 0
    for letter in fitting:
        if letter.position in done:
            left_out += 1
        elif chosen.limit is None or report.matched + len(group) < chosen.limit:
            done.add(letter.position)
            group.append(letter)
    return group, replace(
        report,
        read=report.read + len(letters),
        matched=report.matched + len(group),
        redriven_before=report.redriven_before + left_out,
        unreadable=report.unreadable + len(letters) - len(readable),
    )


def _fits(letter: _Letter, chosen: RedriveFilter) -> bool:
    return (
        chosen.cause in (None, letter.cause)
        and chosen.topic in (None, letter.topic)
        and chosen.partition in (None, letter.partition)
        and chosen.offset in (None, letter.offset)
    )


def _redriven(store: Store) -> set[tuple[str, int, int]]:
    rows = store.query(
        "SELECT DISTINCT topic, partition, offset FROM dead_letters WHERE isNotNull(redriven_at)"
    )
    return {(topic, partition, offset) for topic, partition, offset in rows.rows}


async def _dead_letters(settings: KafkaSettings) -> AsyncIterator[list[Any]]:
    """Read the dead-letter topic from its beginning to where it ends now, group by group."""
    topic = prefixed(DEAD, settings.topic_prefix)
    consumer = AIOKafkaConsumer(
        topic,
        **settings.connection_options(),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    try:
        await consumer.start()
        partitions = sorted(consumer.assignment())
        if not partitions:
            raise KafkaUnavailableError(
                f"the topic {topic} does not exist, or this user may not read it: run "
                "`approvaltrail migrate`"
            )
        async for records in _until(consumer, await consumer.end_offsets(partitions)):
            yield records
    except (KafkaError, OSError) as error:
        raise KafkaUnavailableError(
            f"the topic {topic} cannot be read ({type(error).__name__}): check the address, that "
            "Kafka runs, and the credentials"
        ) from error
    finally:
        await consumer.stop()


async def _until(
    consumer: AIOKafkaConsumer, ends: dict[TopicPartition, int]
) -> AsyncIterator[list[Any]]:
    moved_at = time.monotonic()
    while True:
        open_ends = [part for part, end in ends.items() if await consumer.position(part) < end]
        if not open_ends:
            return
        found = await consumer.getmany(*open_ends, timeout_ms=500, max_records=_AT_ONCE)
        records = [
            record for part, part_records in found.items() for record in part_records
            if record.offset < ends[part]
        ]  # fmt: skip
        if records:
            moved_at = time.monotonic()
            yield records
        elif time.monotonic() - moved_at > _READ_PATIENCE_SECONDS:
            raise RedriveError(
                f"Kafka has given no more dead letters for {_READ_PATIENCE_SECONDS:.0f} s; what "
                "was sent so far is marked: run the redrive again"
            )


class _Sender:
    """Sends letters back and marks them; connects with the first."""

    def __init__(self, settings: KafkaSettings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._producers: dict[str | None, AIOKafkaProducer] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for producer in self._producers.values():
            await producer.stop()

    async def send(self, letters: Sequence[_Letter]) -> None:
        """Send all and, when all arrived, mark all."""
        try:
            await asyncio.gather(*[await self._one(letter) for letter in letters])
        except (KafkaError, OSError, TimeoutError) as error:
            raise RedriveError(
                f"a dead letter could not be sent again ({type(error).__name__}); what was sent "
                "before is marked: check Kafka and run the redrive again"
            ) from error
        rows = [letter.marked(datetime.now(UTC)) for letter in letters]
        await asyncio.to_thread(insert_dead_letters, self._store, rows)

    async def _connected(self, compression: str | None) -> AIOKafkaProducer:
        if compression not in self._producers:
            options = producer_options(self._settings) | {"compression_type": compression}
            producer = AIOKafkaProducer(**options, linger_ms=5)
            self._producers[compression] = producer
            await producer.start()
        return self._producers[compression]

    async def _one(self, letter: _Letter) -> Any:
        # larger than the topic takes, it came compressed; one that just fits grows by compressing
        large = len(letter.record.value or b"") > topic_described(EVENTS).max_message_bytes
        producer = await self._connected("lz4" if large else None)
        topic = self._topic_of(letter)
        numbers = await producer.partitions_for(topic)
        return await producer.send(
            topic,
            letter.record.value,
            key=sendable_key(letter.record),
            partition=letter.partition if letter.partition in numbers else None,
            headers=letter.original_headers(),
        )

    def _topic_of(self, letter: _Letter) -> str:
        """Return the topic it came from, if it is one of ours: a header could name any."""
        known = {prefixed(name, self._settings.topic_prefix) for name in NAMES} - {
            prefixed(DEAD, self._settings.topic_prefix)
        }
        events = prefixed(EVENTS, self._settings.topic_prefix)
        return letter.topic if letter.topic in known else events
