"""Blocks: what goes in undecoded comes out as it was, and nothing misframed gets through."""

from __future__ import annotations

import io
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import fastavro
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.consumers.parts import Journal, Message, misframed
from tests.contract.strategies import recorded_events

from approvaltrail.consumers.block import BlockBuilder, new_fence
from approvaltrail.consumers.isolation import find_bad
from approvaltrail.consumers.sorting import Rejected, sort_by_header
from approvaltrail.consumers.window import time_window
from approvaltrail.schemas.contract import HEADER_BYTES, event_contract, event_contracts
from approvaltrail.schemas.encoding import decode_event, decode_values, encode_recorded
from approvaltrail.schemas.messages import DeadLetterCause
from approvaltrail.store.errors import StoreRefusedError
from approvaltrail.store.writing import insert_events

if TYPE_CHECKING:
    from approvaltrail.schemas.events import RecordedEvent
    from approvaltrail.store.connection import Store

SEED = 20261130
NEIGHBOURS = 24
CASES = 110


def records_of(data: bytes) -> list[dict]:
    """Read a block as any Avro reader would."""
    return list(fastavro.reader(io.BytesIO(data)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(recorded_events(), st.integers(0, 2**62 - 1)), min_size=1, max_size=8))
def test_a_block_holds_the_very_events(pairs: list[tuple[RecordedEvent, int]]) -> None:
    """Any Avro reader finds each event, its position and the fence in a block."""
    messages = [
        Message(encode_recorded(event), offset, number % 40)
        for number, (event, offset) in enumerate(pairs)
    ]
    block = BlockBuilder(event_contract()).build(messages)
    records = records_of(block.data)
    assert block.events == len(records) == len(messages)
    for record, message in zip(records, messages, strict=True):
        assert record.pop("kafka_partition") == message.partition
        assert record.pop("kafka_offset") == message.offset
        assert record.pop("fence") == block.fence
        assert record == decode_values(message.value)


def test_offsets_of_every_size_survive() -> None:
    """The precomputed part of an offset and its cached high part join to the right number."""
    value = Journal().record()[1]
    offsets = sorted({0, *(1 << power for power in range(62)), *range(8_180, 8_200), 2**62 - 1})
    block = BlockBuilder(event_contract()).build([Message(value, offset) for offset in offsets])
    assert [record["kafka_offset"] for record in records_of(block.data)] == offsets


def test_a_fence_is_new_for_each_block_and_always_ten_bytes_long() -> None:
    """Nobody can know a fence beforehand, and no short number can pass for one."""
    fences = {new_fence() for _ in range(1_000)}
    assert len(fences) == 1_000
    assert all(2**62 <= fence < 2**63 for fence in fences)


def test_messages_without_a_known_header_are_sorted_out_undecoded() -> None:
    """Empty, foreign and unknown beginnings get their causes; the others keep their order."""
    journal = Journal()
    good = [Message(journal.record()[1], offset) for offset in range(3)]
    bad = [
        (Message(None), DeadLetterCause.EMPTY),
        (Message(b""), DeadLetterCause.EMPTY),
        (Message(b"\xc3\x01abc"), DeadLetterCause.BAD_FRAMING),
        (Message(b"\x00\x00\x00\x07"), DeadLetterCause.BAD_FRAMING),
        (Message(b"\xc3\x01" + b"?" * 8 + b"rest"), DeadLetterCause.UNKNOWN_SCHEMA),
    ]
    foreign = Message(b"\x00\x00\x00\x00\x07" + b"x" * 40)
    mixed = [good[0], bad[0][0], bad[1][0], foreign, good[1], *(one for one, _ in bad[2:]), good[2]]
    found = sort_by_header(mixed, event_contracts())
    assert found.by_header == {event_contract().header: good}
    assert found.strangers == {b"\x00\x00\x00\x00\x07": [foreign]}
    assert [one.cause for one in found.rejected] == [cause for _, cause in bad]


def test_no_misframed_body_gets_through_or_harms_a_neighbour(store: Store) -> None:
    """The engine refuses the blocks with a body that strict decoding refuses, and no others."""
    chance = random.Random(SEED)
    journal, times = Journal(), time_window(retention_days=1_096, future_tolerance_seconds=3_600)
    bodies = [value for _, value in journal.records(NEIGHBOURS)]
    builder, header = BlockBuilder(event_contract()), event_contract().header
    accepted, unharmed = 0, []
    middle = NEIGHBOURS // 2
    for case in range(CASES):
        tails = [body[HEADER_BYTES:] for body in bodies]
        poison = header + misframed(tails[middle], chance, tails) if case else bodies[middle]
        values = [*bodies[:middle], poison, *bodies[middle + 1 :]]
        messages = [Message(value, 9_000 + at, case) for at, value in enumerate(values)]
        block = builder.build(messages)
        bad = find_bad(messages, builder.single_object, times)
        assert [one.message.offset for one in bad] in ([], [9_000 + middle])
        try:
            insert_events(store, block.data, block.fence, block.contract.fingerprint, times)
        except StoreRefusedError:
            assert bad, f"seed {SEED}, case {case}: refused, though it decodes: {poison.hex()}"
        else:
            assert all(map(is_odd_null, bad)), f"seed {SEED}, case {case}: {poison.hex()}"
            found = neighbours(store, case, 9_000 + middle)
            unharmed = unharmed or found
            assert found == unharmed
            accepted += 1
    assert len(unharmed) == NEIGHBOURS - 1
    assert 1 < accepted < CASES / 2


def is_odd_null(bad: Rejected) -> bool:
    """Tell the one kind that the engine takes and fastavro does not: no branch of its union.

    The engine reads it as null. It takes no byte more or less than a null would, so the framing
    holds, and whoever can write it can as well write a null.
    """
    return bad.detail.endswith("IndexError")


def neighbours(store: Store, case: int, poison: int) -> list[tuple[int, int]]:
    """Return position and digest of what a case stored beside the poison."""
    return store.query(
        "SELECT kafka_offset, cityHash64(* EXCEPT (kafka_partition, stored_at)) FROM events "
        "WHERE kafka_partition = {case:Int32} AND kafka_offset != {poison:Int64} "
        "ORDER BY kafka_offset",
        {"case": case, "poison": poison},
    ).rows


def test_a_time_that_no_calendar_knows_is_out_of_range() -> None:
    """An instant beyond year 9999 is told from damaged bytes."""
    sequence, value = Journal().record()
    event = decode_event(value)
    record = {**decode_values(value), "occurred_at": 2**62}
    stream = io.BytesIO()
    stream.write(event_contract().header)
    fastavro.schemaless_writer(stream, event_contract().parsed, record)
    times = time_window(
        retention_days=30, future_tolerance_seconds=60, now=datetime(2026, 11, 30, tzinfo=UTC)
    )
    single_object = BlockBuilder(event_contract()).single_object
    [bad] = find_bad([Message(stream.getvalue())], single_object, times)
    assert (sequence, event.sequence) == (1, 1)
    assert bad.cause is DeadLetterCause.TIME_OUT_OF_RANGE
