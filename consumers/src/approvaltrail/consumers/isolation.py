"""Find the messages for which a block was refused, by decoding every one of them strictly."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import fastavro

from approvaltrail.consumers.sorting import Rejected
from approvaltrail.schemas.contract import HEADER_BYTES, event_contracts
from approvaltrail.schemas.encoding import decode_event, decode_values, microseconds
from approvaltrail.schemas.errors import UndecodableError
from approvaltrail.schemas.messages import DeadLetterCause
from approvaltrail.store.answers import TimeRange

ROW_CODES: Final = frozenset(
    {
        6,  # CANNOT_PARSE_TEXT
        23,  # CANNOT_READ_FROM_ISTREAM
        26,  # CANNOT_PARSE_QUOTED_STRING
        27,  # CANNOT_PARSE_INPUT_ASSERTION_FAILED
        32,  # ATTEMPT_TO_READ_AFTER_EOF
        33,  # CANNOT_READ_ALL_DATA
        38,  # CANNOT_PARSE_DATE
        41,  # CANNOT_PARSE_DATETIME
        53,  # TYPE_MISMATCH
        69,  # ARGUMENT_OUT_OF_BOUND
        70,  # CANNOT_CONVERT_TYPE
        72,  # CANNOT_PARSE_NUMBER
        117,  # INCORRECT_DATA
        128,  # TOO_LARGE_ARRAY_SIZE
        131,  # TOO_LARGE_STRING_SIZE
        321,  # VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
        349,  # CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
        376,  # CANNOT_PARSE_UUID
        395,  # FUNCTION_THROW_IF_VALUE_IS_NON_ZERO: our own guard
        407,  # DECIMAL_OVERFLOW
        469,  # VIOLATED_CONSTRAINT
        691,  # UNKNOWN_ELEMENT_OF_ENUM
        748,  # AVRO_EXCEPTION
        1001,  # STD_EXCEPTION: what the Avro reader may throw
    }
)
"""Codes of ClickHouse (`src/Common/ErrorCodes.cpp`) that may speak of single rows."""
_MAXIMUM_SEQUENCE: Final = 2**63 - 1


SingleObject = Callable[[Any], bytes]
"""Gives a message's bytes in single-object encoding, which is what is judged."""


def find_bad(
    messages: Sequence[Any], single_object: SingleObject, times: TimeRange
) -> list[Rejected]:
    """Return the messages that are no events of their schema, or bear an impossible time.

    The store's guard and this agree: what one refuses, so does the other. Takes some 20 µs a
    message, so it is only asked when a block was refused.
    """
    judged = (_judge(message, single_object(message), times) for message in messages)
    return [bad for bad in judged if bad is not None]


def refused_alone(message: Any, single_object: SingleObject, code: int | None) -> Rejected:
    """Say why a message was refused that decodes well: by the contract, or by the store alone."""
    try:
        decode_event(single_object(message))
    except UndecodableError as error:
        return Rejected(message, DeadLetterCause(error.cause), str(error))
    detail = f"the store refused it with code {code}"
    return Rejected(message, DeadLetterCause.REFUSED_BY_STORE, detail)


def _judge(message: Any, data: bytes, times: TimeRange) -> Rejected | None:
    try:
        values = decode_values(data)
    except UndecodableError as error:
        if error.cause == "undecodable" and _raw_time_is_out(data, times):
            return _out_of_range(message)
        return Rejected(message, DeadLetterCause(error.cause), str(error))
    if not _within(values["occurred_at"], times):
        return _out_of_range(message)
    if not 1 <= values["sequence"] <= _MAXIMUM_SEQUENCE:
        detail = "breaks the contract in: sequence"
        return Rejected(message, DeadLetterCause.INVALID_VALUE, detail)
    return None


def _within(instant: datetime, times: TimeRange) -> bool:
    return times.start <= instant < times.end


def _out_of_range(message: Any) -> Rejected:
    detail = "occurred_at is too far in the future, or older than what is kept"
    return Rejected(message, DeadLetterCause.TIME_OUT_OF_RANGE, detail)


def _raw_time_is_out(data: bytes, times: TimeRange) -> bool:
    """Say whether this is an event whose only fault may be a time that no datetime can hold."""
    schema = _plain_schemas()[data[:HEADER_BYTES]]
    stream = io.BytesIO(data)
    stream.seek(HEADER_BYTES)
    try:
        values: Any = fastavro.schemaless_reader(stream, schema, None)
    except Exception:  # noqa: BLE001 - fastavro raises whatever the bytes lead it into
        return False
    earliest, latest = microseconds(times.start), microseconds(times.end)
    return stream.tell() == len(data) and not earliest <= values["occurred_at"] < latest


@functools.cache
def _plain_schemas() -> dict[bytes, Any]:
    """Return every event schema without logical types, so that any number is read as it stands."""
    return {
        header: fastavro.parse_schema(_without_logical_types(known.schema))
        for header, known in event_contracts().items()
    }


def _without_logical_types(schema: Any) -> Any:
    match schema:
        case dict():
            return {
                key: _without_logical_types(value)
                for key, value in schema.items()
                if key not in {"logicalType", "default", "doc"}
            }
        case list():
            return [_without_logical_types(item) for item in schema]
    return schema
