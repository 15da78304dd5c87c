"""One Kafka client, used until it fails once.

aiokafka's idempotent producer can lose its place in a partition's sequence after a failed batch and
then fails every later one (aiokafka#1017). So no client is trusted after a failure: it is
discarded, another is made, and the journal is replayed from the last contiguous acknowledgement.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from typing import TYPE_CHECKING, Any, Final, Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from approvaltrail.producer.errors import RelayError
from approvaltrail.producer.kafka_options import producer_options
from approvaltrail.producer.partitions import partitioner
from approvaltrail.schemas import topics
from approvaltrail.schemas.messages import event_headers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from approvaltrail.producer.reading import JournalRow
    from approvaltrail.producer.settings import ProducerSettings

_DISCARD_SECONDS: Final = 0.3
_SLICE_EVENTS: Final = 64
"""After so many events, less than a millisecond's work, those who record are given way."""


class Link:
    """Sends events and messages; every failure is a RelayError, and then the link is finished."""

    def __init__(
        self, client: AIOKafkaProducer, settings: ProducerSettings, partitions: int
    ) -> None:
        self._client = client
        self._events_topic = topics.prefixed(topics.EVENTS, settings.topic_prefix)
        self._prefix = settings.topic_prefix
        self._patience = settings.request_timeout_ms / 1_000 * 1.5
        self._partition_of: Callable[[bytes], int] = partitioner(partitions)
        self.give_way: Callable[[], None] = _nobody
        """Called now and then while a chunk is made ready."""
        self.framed: Callable[[bytes], bytes] = _as_it_is
        """Gives each event the header that it has on the wire."""

    @classmethod
    async def open(cls, settings: ProducerSettings) -> Self:
        """Connect, and see that the topic of events is there.

        Raises:
            RelayError: the broker cannot be reached, or the topic is missing.
        """
        client = AIOKafkaProducer(**producer_options(settings))
        try:
            await _started(client, settings.relay_connect_seconds)
            counts = [
                await _partitions(
                    client,
                    topics.prefixed(name, settings.topic_prefix),
                    settings.relay_connect_seconds,
                )
                for name in (topics.EVENTS, topics.SEALS, topics.HEARTBEATS)
            ]
        except BaseException:
            await _discard(client)
            raise
        return cls(client, settings, counts[0])

    async def send_events(self, producer_id: str, rows: Sequence[JournalRow]) -> list[JournalRow]:
        """Send rows and wait for every acknowledgement; return the rows too large to be sent."""
        batches, too_large = self._batches(producer_id, rows)
        await self._acknowledged(
            [
                functools.partial(
                    self._client.send_batch, batch, self._events_topic, partition=partition
                )
                for partition, batch in batches
            ]
        )
        return too_large

    async def send_messages(self, topic: str, key: str, values: Sequence[bytes]) -> None:
        """Send messages of one key to a topic, in order, and wait for their acknowledgement."""
        name, encoded = topics.prefixed(topic, self._prefix), key.encode()
        await self._acknowledged(
            [functools.partial(self._client.send, name, value, key=encoded) for value in values]
        )

    async def discard(self) -> None:
        """Let go of the client, without waiting for what it may still hold."""
        await _discard(self._client)

    def _batches(
        self, producer_id: str, rows: Sequence[JournalRow]
    ) -> tuple[list[tuple[int, Any]], list[JournalRow]]:
        open_batches: dict[int, Any] = {}
        batches: list[tuple[int, Any]] = []
        too_large: list[JournalRow] = []
        own_key = producer_id.encode()
        for place, row in enumerate(rows):
            if place % _SLICE_EVENTS == 0:
                self.give_way()
            sequence, recorded_at, _, key, body = row
            key, body = key or own_key, self.framed(body)
            partition = self._partition_of(key)
            headers = event_headers(producer_id, sequence)
            milliseconds = recorded_at // 1_000
            batch = open_batches.get(partition)
            if batch is not None and batch.append(
                timestamp=milliseconds, key=key, value=body, headers=headers
            ):
                continue
            batch = self._client.create_batch()
            if batch.append(timestamp=milliseconds, key=key, value=body, headers=headers):
                open_batches[partition] = batch
                batches.append((partition, batch))
            else:
                too_large.append(row)
        return batches, too_large

    async def _acknowledged(
        self, sends: Sequence[Callable[[], Awaitable[asyncio.Future[Any]]]]
    ) -> None:
        futures: list[asyncio.Future[Any]] = []
        try:
            async with asyncio.timeout(self._patience):
                # one after the other: two batches of one partition must not overtake each other
                for send in sends:
                    future = await send()
                    future.add_done_callback(_look_at)
                    futures.append(future)
                await asyncio.gather(*futures)
        except (KafkaError, OSError, TimeoutError) as error:
            raise _failure("the broker did not take a batch", error) from error


async def _started(client: AIOKafkaProducer, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await client.start()
    except (KafkaError, OSError, TimeoutError) as error:
        raise _failure("the broker cannot be reached", error) from error


async def _partitions(client: AIOKafkaProducer, topic: str, seconds: float) -> int:
    try:
        async with asyncio.timeout(seconds):
            return len(await client.partitions_for(topic))
    except (KafkaError, OSError, TimeoutError) as error:
        raise _failure(
            f"the topic {topic} is not there (run `approvaltrail migrate`)", error
        ) from error


def _look_at(future: asyncio.Future[Any]) -> None:
    """Look at a result nobody may wait for any more, so that asyncio does not complain of it."""
    if not future.cancelled():
        future.exception()


def _nobody() -> None:
    """Give way to nobody."""


def _as_it_is(body: bytes) -> bytes:
    """Leave an event in the framing of its journal."""
    return body


def _failure(what: str, error: BaseException) -> RelayError:
    """Name the kind of failure only: a client's message may quote addresses and user names."""
    return RelayError(f"{what}: {type(error).__name__}")


async def _discard(client: AIOKafkaProducer) -> None:
    # the client's own stop waits for what is in flight; nobody needs that: it is replayed
    for ending in (client.stop, client.client.close):
        with contextlib.suppress(KafkaError, OSError, TimeoutError, RuntimeError):
            async with asyncio.timeout(_DISCARD_SECONDS):
                await ending()
