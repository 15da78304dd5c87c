"""One event as an exported row: every field of the contract, where it is stored, and its hash.

The hash is over the row's values as canonical JSON (ASCII, keys sorted, no spaces), so it is the
same in either encoding and a verifier can name the event that was changed. Nothing that looks like
a token leaves, should a row ever hold one.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from approvaltrail.schemas.token_shape import without_tokens
from approvaltrail.store.answers import StoredEvent
from approvaltrail.store.columns import STORED_COLUMNS

HASH: Final = "row_sha256"
_STORED: Final = {
    "kafka_partition": "partition",
    "kafka_offset": "offset",
    "stored_at": "stored_at",
    "schema_fingerprint": "schema_fingerprint",
}
NAMES: Final = tuple(name for name, _ in STORED_COLUMNS)
COLUMNS: Final = (*NAMES, HASH)
"""Names and order of an exported row's fields."""
BOOLEANS: Final = frozenset(name for name, kind in STORED_COLUMNS if kind == "Bool")
NUMBERS: Final = frozenset(name for name, kind in STORED_COLUMNS if "Int" in kind)
LISTS: Final = frozenset(name for name, kind in STORED_COLUMNS if kind.startswith("Array"))

Row = dict[str, Any]


def row_of(stored: StoredEvent) -> Row:
    """Return an event's row, its hash last."""
    row = {}
    for name in NAMES:
        origin, field = (stored, _STORED[name]) if name in _STORED else (stored.event, name)
        row[name] = _plain(getattr(origin, field))
    return row | {HASH: digest(row)}


def digest(row: Row) -> str:
    """Return the hash of a row's values, whatever it says its hash is."""
    values = {name: value for name, value in row.items() if name != HASH}
    text = json.dumps(values, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def instant(moment: datetime) -> str:
    """Return an instant in UTC with microseconds: `2026-03-08T06:00:00.000000Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _plain(value: Any) -> Any:
    match value:
        case Enum():
            return value.value
        case datetime():
            return instant(value)
        case str():
            return without_tokens(value)
        case tuple() | list():
            return [_plain(one) for one in value]
        case _:
            return value
