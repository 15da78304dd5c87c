"""The event's bytes: one encoding, the same as a general Avro writer's, decoded strictly."""

from __future__ import annotations

import io

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.strategies import recorded_events

from approvaltrail.schemas.contract import HEADER_BYTES, event_contract
from approvaltrail.schemas.encoding import (
    decode_event,
    decode_values,
    encode_event,
    encode_recorded,
    microseconds,
    producer_stamp,
    stamp,
    varint,
)
from approvaltrail.schemas.errors import UndecodableError
from approvaltrail.schemas.events import ApprovalEvent, RecordedEvent

GENEROUS = settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def by_fastavro(event: RecordedEvent) -> bytes:
    values = event.model_dump()
    values["attributes"] = [{"name": name, "value": text} for name, text in event.attributes]
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, event_contract().parsed, values)
    return event_contract().header + stream.getvalue()


@given(recorded_events())
@GENEROUS
def test_the_generated_encoder_writes_what_a_general_writer_writes(event: RecordedEvent) -> None:
    """For every event, the generated encoder's bytes equal fastavro's."""
    assert encode_recorded(event) == by_fastavro(event)


@given(recorded_events())
@GENEROUS
def test_an_event_survives_encoding(event: RecordedEvent) -> None:
    """Decoding gives back the very event, and encoding that the very bytes."""
    data = encode_recorded(event)
    assert decode_event(data) == event
    assert encode_recorded(decode_event(data)) == data


@given(recorded_events())
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_stamps_come_first(event: RecordedEvent) -> None:
    """A journal stamps an encoded event by putting bytes before it, encoding nothing again."""
    said = ApprovalEvent(**event.model_dump(include=set(ApprovalEvent.model_fields)))
    producer = producer_stamp(event.producer_id, event.service, event.instance)
    head = stamp(event.sequence, microseconds(event.recorded_at), producer)
    assert head + encode_event(said) == encode_recorded(event)


@given(recorded_events(), st.data())
@GENEROUS
def test_a_cut_event_is_refused(event: RecordedEvent, data: st.DataObject) -> None:
    """No prefix of an event's bytes, and no event with bytes behind it, decodes."""
    encoded = encode_recorded(event)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    for wrong in (encoded[:cut], encoded + b"\0"):
        with pytest.raises(UndecodableError) as caught:
            decode_event(wrong)
        assert caught.value.cause in {"empty", "bad_framing", "undecodable"}


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", "empty"),
        (b"\xc3", "bad_framing"),
        (b"\x00\x00\x00\x00\x01payload", "bad_framing"),
        (b"\xc3\x01" + b"\x00" * 8 + b"payload", "unknown_schema"),
    ],
)
def test_each_fault_has_its_cause(data: bytes, cause: str) -> None:
    """What cannot be an event says why not, by a stable code."""
    with pytest.raises(UndecodableError) as caught:
        decode_values(data)
    assert caught.value.cause == cause


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_are_avros(number: int) -> None:
    """A varint is read by fastavro as the number it stands for."""
    assert fastavro.schemaless_reader(io.BytesIO(varint(number)), "long", None) == number


def test_the_header_is_single_object_encoding() -> None:
    """The header is the marker and the little-endian CRC-64-AVRO of the canonical form."""
    contract = event_contract()
    assert len(contract.header) == HEADER_BYTES
    assert contract.header.hex() == "c301da98f317481b9f36"
