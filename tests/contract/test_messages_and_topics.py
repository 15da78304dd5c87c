"""Heartbeats, seals, repair requests and the topics they travel on."""

from __future__ import annotations

import os
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from approvaltrail.schemas import topics
from approvaltrail.schemas.errors import UndecodableError
from approvaltrail.schemas.identity import UUID_PATTERN, new_event_id, new_producer_id, uuid7
from approvaltrail.schemas.messages import (
    Heartbeat,
    Message,
    ProducerState,
    RepairRequest,
    Seal,
    SequenceRange,
    event_headers,
    owner_of,
)

NOW = datetime(2026, 3, 8, 6, 59, 59, 999_001, tzinfo=UTC)
PRODUCER = new_producer_id()
MESSAGES: list[Message] = [
    Heartbeat(
        producer_id=PRODUCER,
        service="tidb-mcp",
        instance="pod-1",
        sent_at=NOW,
        started_at=NOW,
        state=ProducerState.LIVE,
        last_sequence=41,
        previous_producer_id=new_producer_id(),
        lost_ranges=(SequenceRange(first_sequence=3, last_sequence=4, reason="damaged page"),),
    ),
    Seal(
        producer_id=PRODUCER,
        seal_number=1,
        first_sequence=1,
        last_sequence=41,
        merkle_root="a" * 64,
        previous_seal_digest="0" * 64,
        sealed_at=NOW,
    ),
    RepairRequest(producer_id=PRODUCER, first_sequence=3, last_sequence=4, requested_at=NOW),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_survives_encoding(message: Message) -> None:
    """Every kind of message decodes to itself, and to nothing else when it is cut."""
    kind, data = type(message), message.encode()
    assert kind.decode(data) == message
    for wrong in (data[:-1], data + b"\0", b"", data[:10]):
        with pytest.raises(UndecodableError):
            kind.decode(wrong)


def test_a_message_of_another_kind_is_refused() -> None:
    """A heartbeat is not read as a seal."""
    with pytest.raises(UndecodableError):
        Seal.decode(MESSAGES[0].encode())


def test_negative_counts_are_refused() -> None:
    """A heartbeat cannot claim less than nothing."""
    with pytest.raises(ValidationError):
        Heartbeat(**MESSAGES[0].model_dump() | {"pending": -1})


def test_headers_name_the_owner() -> None:
    """Headers say whose event it is, even when its value cannot be read."""
    assert owner_of(event_headers(PRODUCER, 7)) == (PRODUCER, 7)
    assert owner_of([]) is None
    assert owner_of([("producer_id", b"\xff"), ("sequence", b"7")]) is None
    assert owner_of([("producer_id", b"p"), ("sequence", b"seven")]) is None


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**74 - 1))
def test_identities_are_version_7_and_sort_by_time(milliseconds: int, bits: int) -> None:
    """An identity is a UUIDv7 whose order is that of its milliseconds."""
    text = uuid7(milliseconds, bits)
    assert str(uuid.UUID(text)) == text
    assert (text[14], text[19] in "89ab") == ("7", True)
    if milliseconds < 2**48 - 1:
        assert text < uuid7(milliseconds + 1, 0)


def test_no_identity_is_minted_twice() -> None:
    """Threads that mint side by side never get the same random bits."""
    with ThreadPoolExecutor(4) as threads:
        groups = threads.map(lambda _: [new_event_id() for _ in range(2_000)], range(8))
        minted = [text for group in groups for text in group]
    assert all(re.fullmatch(UUID_PATTERN, text) for text in minted)
    assert len({text[-16:] for text in minted}) == len(minted)


def test_a_forked_child_mints_identities_of_its_own() -> None:
    """What was drawn from the random source before a fork is used by the parent alone."""
    new_event_id()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_event_id()[-16:].encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() != new_event_id()[-16:]


def test_every_topic_is_described() -> None:
    """Each topic has an owner, a key, partitions and a retention; the record is never expired."""
    described = {topic.name: topic for topic in topics.all_topics()}
    assert tuple(described) == topics.NAMES
    for topic in described.values():
        assert topic.partitions >= topic.partitions_single_machine >= 1
        assert topic.configuration()["cleanup.policy"] == "delete"
    assert described[topics.EVENTS].retention_ms == described[topics.SEALS].retention_ms == -1
