"""What has been fetched and not yet stored: a buffer that gathers, and the batch taken from it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.structs import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Messages that are stored together, by partition, in the order of their offsets."""

    messages: dict[TopicPartition, list[Any]]
    events: int
    value_bytes: int
    epoch: int
    """The assignment that they were fetched under."""

    def __iter__(self) -> Iterator[Any]:
        """Go through all messages, partition by partition."""
        for messages in self.messages.values():
            yield from messages

    def next_offsets(self) -> dict[TopicPartition, int]:
        """Return where each partition goes on when all of this is done."""
        return {partition: messages[-1].offset + 1 for partition, messages in self.messages.items()}


class Buffer:
    """Gathers messages until they are worth a batch: enough of them, or one that waited enough."""

    def __init__(self, *, most_events: int, most_bytes: int, longest_seconds: float) -> None:
        self._most_events = most_events
        self._most_bytes = most_bytes
        self._longest_seconds = longest_seconds
        self._messages: dict[TopicPartition, list[Any]] = {}
        self.events = 0
        self.value_bytes = 0
        self._first_at = 0.0

    def add(self, partition: TopicPartition, messages: Sequence[Any]) -> None:
        """Take messages of one partition that follow those already here."""
        if not self.events:
            self._first_at = time.monotonic()
        self._messages.setdefault(partition, []).extend(messages)
        self.events += len(messages)
        self.value_bytes += sum(len(message.value or b"") for message in messages)

    @property
    def full(self) -> bool:
        """Whether no more should be fetched before a batch is taken."""
        return self.events >= self._most_events or self.value_bytes >= self._most_bytes

    @property
    def room(self) -> int:
        """How many more messages may be asked for."""
        return 0 if self.full else self._most_events - self.events

    def due_in(self) -> float | None:
        """Return in how many seconds a batch should be taken, or None when there is nothing."""
        if not self.events:
            return None
        if self.full:
            return 0.0
        return max(0.0, self._first_at + self._longest_seconds - time.monotonic())

    def take(self, epoch: int) -> Batch | None:
        """Empty the buffer into a batch, or return None when there is nothing."""
        if not self.events:
            return None
        batch = Batch(
            messages=self._messages, events=self.events, value_bytes=self.value_bytes, epoch=epoch
        )
        self.clear()
        return batch

    def clear(self) -> None:
        """Drop everything: it will be fetched again by whoever owns the partitions."""
        self._messages = {}
        self.events = self.value_bytes = 0

    def drop(self, partition: TopicPartition) -> None:
        """Drop what one partition has here."""
        gone = self._messages.pop(partition, [])
        self.events -= len(gone)
        self.value_bytes -= sum(len(message.value or b"") for message in gone)
