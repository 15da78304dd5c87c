"""Sort a batch's messages by what can be seen of them without decoding: their first ten bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from approvaltrail.schemas.contract import HEADER_BYTES, MARKER, Contract
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
    """Messages by the schema they were written with, and those that name none we know."""

    by_contract: dict[bytes, list[Any]] = field(default_factory=dict)
    rejected: list[Rejected] = field(default_factory=list)


def sort_by_contract(messages: Iterable[Any], contracts: Mapping[bytes, Contract]) -> Sorted:
    """Group messages by header; what has no known header is rejected with its cause."""
    found = Sorted()
    current, add = b"", None
    for message in messages:
        header = (message.value or b"")[:HEADER_BYTES]
        if header != current or add is None:
            if header not in contracts:
                found.rejected.append(_rejected(message, header))
                continue
            add = found.by_contract.setdefault(header, []).append
            current = header
        add(message)
    return found


def _rejected(message: Any, header: bytes) -> Rejected:
    if not header:
        return Rejected(message, DeadLetterCause.EMPTY, "the message has no value")
    if len(header) < HEADER_BYTES or not header.startswith(MARKER):
        detail = "the value is not in single-object encoding"
        return Rejected(message, DeadLetterCause.BAD_FRAMING, detail)
    detail = f"no known schema has fingerprint {header[len(MARKER) :].hex()}"
    return Rejected(message, DeadLetterCause.UNKNOWN_SCHEMA, detail)
