"""Which column of the table `events` holds which field of the contract.

The type map from Avro to ClickHouse is checked when a process starts: some wrong pairs fail loudly
(an enum symbol that an `Enum8` does not know), others silently (milliseconds read as microseconds,
null turned into an empty text). Enums are texts in the store, so that a newer producer's symbol is
stored as it came.
"""

from __future__ import annotations

from typing import Any, Final

from approvaltrail.schemas.contract import event_contracts

INSTANT: Final = "DateTime64(6, 'UTC')"
_NULLABLE_INSTANT: Final = f"Nullable({INSTANT})"
_FEW: Final = "LowCardinality(String)"
_FEW_OR_NULL: Final = "LowCardinality(Nullable(String))"
_TEXT_OR_NULL: Final = "Nullable(String)"
_ID_OR_NULL: Final = "Nullable(UUID)"
_PAIRS: Final = "Array(Tuple(name String, value String))"

EVENT_COLUMNS: Final[tuple[tuple[str, str], ...]] = (
    ("sequence", "UInt64"),
    ("recorded_at", INSTANT),
    ("producer_id", "UUID"),
    ("service", _FEW),
    ("instance", _FEW),
    ("event_id", "UUID"),
    ("event_type", _FEW),
    ("occurred_at", INSTANT),
    ("reason", _FEW_OR_NULL),
    ("outcome", _FEW_OR_NULL),
    ("acceptance_id", _ID_OR_NULL),
    ("nonce", _TEXT_OR_NULL),
    ("nonce_trust", _FEW),
    ("tenant", _FEW_OR_NULL),
    ("tool", _FEW),
    ("target", _TEXT_OR_NULL),
    ("action", _FEW_OR_NULL),
    ("plan_hash", _TEXT_OR_NULL),
    ("ledgered", "Bool"),
    ("plan_summary", _TEXT_OR_NULL),
    ("issued_at", _NULLABLE_INSTANT),
    ("expires_at", _NULLABLE_INSTANT),
    ("key_id", _FEW_OR_NULL),
    ("token_tenant", _FEW_OR_NULL),
    ("token_tool", _FEW_OR_NULL),
    ("token_target", _TEXT_OR_NULL),
    ("token_plan_hash", _TEXT_OR_NULL),
    ("spent_at", _NULLABLE_INSTANT),
    ("spent_claim_id", _ID_OR_NULL),
    ("principal", _TEXT_OR_NULL),
    ("principal_kind", _FEW),
    ("credential_id", _TEXT_OR_NULL),
    ("session_id", _TEXT_OR_NULL),
    ("peer_address", _TEXT_OR_NULL),
    ("client_address", _TEXT_OR_NULL),
    ("address_source", _FEW),
    ("client_name", _FEW_OR_NULL),
    ("request_id", _TEXT_OR_NULL),
    ("trace_id", _TEXT_OR_NULL),
    ("attributes", _PAIRS),
)
"""Name and type of every contract field, in the contract's order."""

KAFKA_COLUMNS: Final[tuple[tuple[str, str], ...]] = (
    ("kafka_partition", "Int32"),
    ("kafka_offset", "Int64"),
)
"""Where the sink read an event; it adds them to each record, before the fence."""

STORED_COLUMNS: Final[tuple[tuple[str, str], ...]] = (
    *EVENT_COLUMNS,
    *KAFKA_COLUMNS,
    ("schema_fingerprint", _FEW),
    ("stored_at", "DateTime64(3, 'UTC')"),
)
"""Every column of the table `events`."""

TEXT_COLUMNS: Final = tuple(
    name for name, kind in EVENT_COLUMNS if kind in {_FEW, _FEW_OR_NULL, _TEXT_OR_NULL}
)
"""Columns whose bytes must be valid UTF-8."""
TIME_COLUMNS: Final = tuple(name for name, kind in EVENT_COLUMNS if INSTANT in kind)
"""Columns that hold instants."""

_PLAIN: Final[dict[tuple[str, str | None], tuple[str, ...]]] = {
    ("string", None): (_FEW,),
    ("string", "uuid"): ("UUID",),
    ("enum", None): (_FEW,),
    ("boolean", None): ("Bool",),
    ("long", None): ("UInt64",),
    ("long", "timestamp-micros"): (INSTANT,),
    ("array", None): (_PAIRS,),
}
_OPTIONAL: Final[dict[tuple[str, str | None], tuple[str, ...]]] = {
    ("string", None): (_TEXT_OR_NULL, _FEW_OR_NULL),
    ("string", "uuid"): (_ID_OR_NULL,),
    ("enum", None): (_FEW_OR_NULL,),
    ("long", "timestamp-micros"): (_NULLABLE_INSTANT,),
}


def check_type_map(schema: dict[str, Any] | None = None) -> None:
    """Hold the columns to every version of the Avro contract, or to the one given.

    Raises:
        ValueError: a field has no column, or one that would lose or bend its values.
    """
    schemas = (
        [schema] if schema is not None else [known.schema for known in event_contracts().values()]
    )
    problems = [problem for one in schemas for problem in _problems(one)]
    if problems:
        raise ValueError("the contract does not fit the table events: " + "; ".join(problems))


def _problems(schema: dict[str, Any]) -> list[str]:
    columns = dict(EVENT_COLUMNS)
    problems = []
    for avro in schema["fields"]:
        name, column = avro["name"], columns.get(avro["name"])
        allowed = _allowed(avro["type"])
        if column is None:
            problems.append(f"{name} has no column: add it in a migration and in EVENT_COLUMNS")
        elif column not in allowed:
            fitting = " or ".join(allowed) or "no column type known to be safe"
            problems.append(f"{name} is {column} and needs {fitting}")
    return problems


def _allowed(avro_type: Any) -> tuple[str, ...]:
    if isinstance(avro_type, list):
        others = [branch for branch in avro_type if branch != "null"]
        if len(others) != 1 or len(avro_type) != 2:  # noqa: PLR2004 - null and one other
            return ()
        return _OPTIONAL.get(_key(others[0]), ())
    return _PLAIN.get(_key(avro_type), ())


def _key(avro_type: Any) -> tuple[str, str | None]:
    if isinstance(avro_type, dict):
        return avro_type["type"], avro_type.get("logicalType")
    return avro_type, None
