"""Sort a batch's messages by what can be seen of them without decoding: their header."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from approvaltrail.consumers.unreadable import Unreadable
from approvaltrail.schemas.contract import CONFLUENT_MAGIC, MARKER, Contract, header_of
from approvaltrail.schemas.messages import DeadLetterCause


@dataclass(frozen=True, slots=True)
class Rejected:
    """A message that cannot be stored, and why."""

    message: Any
    """The Kafka record as it came."""
    cause: DeadLetterCause
    detail: str
    """A sentence without any of the message's bytes."""


@dataclass(slots=True)
class Sorted:
    """Messages by the header they came with, and those that cannot be sorted."""

    by_header: dict[bytes, list[Any]] = field(default_factory=dict)
    """Of known headers; a schema has one in each framing."""
    strangers: dict[bytes, list[Any]] = field(default_factory=dict)
    """Of Confluent's framing, by headers that may be known to a registry."""
    rejected: list[Rejected] = field(default_factory=list)


def sort_by_header(messages: Iterable[Any], contracts: Mapping[bytes, Contract]) -> Sorted:
    """Group messages by header; what begins as no known event does is rejected with its cause."""
    found = Sorted()
    current, add = b"", None
    for message in messages:
        value = message.value or b""
        if add is None or not value.startswith(current):
            header = header_of(value)
            if header is not None and header in contracts:
                add = found.by_header.setdefault(header, []).append
                current = header
            elif header is not None and header.startswith(CONFLUENT_MAGIC):
                found.strangers.setdefault(header, []).append(message)
                continue
            else:
                found.rejected.append(_rejected(message, header))
                continue
        add(message)
    return found


def _rejected(message: Any, header: bytes | None) -> Rejected:
    if isinstance(message, Unreadable):
        detail = "its Kafka headers cannot be read; its bytes stay at its position"
        return Rejected(message, DeadLetterCause.BAD_FRAMING, detail)
    if not message.value:
        return Rejected(message, DeadLetterCause.EMPTY, "the message has no value")
    if header is None:
        detail = "the value is neither in single-object encoding nor in Confluent's framing"
        return Rejected(message, DeadLetterCause.BAD_FRAMING, detail)
    detail = f"no known schema has fingerprint {header[len(MARKER) :].hex()}"
    return Rejected(message, DeadLetterCause.UNKNOWN_SCHEMA, detail)
