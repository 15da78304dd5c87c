"""From a stored row back to the event, such that it encodes to the very bytes it came from."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from approvaltrail.schemas.events import (
    AddressSource,
    EventType,
    NonceTrust,
    Outcome,
    PrincipalKind,
    Reason,
    RecordedEvent,
)
from approvaltrail.store.answers import StoredEvent
from approvaltrail.store.columns import EVENT_COLUMNS, STORED_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping

SELECTED: Final = ", ".join(name for name, _ in STORED_COLUMNS)
"""Every column of an event, to stand after SELECT."""
_IDENTITIES: Final = ("event_id", "producer_id", "acceptance_id", "spent_claim_id")
_ENUMS: Final[dict[str, tuple[type[StrEnum], StrEnum | None]]] = {
    "event_type": (EventType, None),
    "reason": (Reason, Reason.OTHER),
    "outcome": (Outcome, Outcome.UNKNOWN),
    "nonce_trust": (NonceTrust, None),
    "principal_kind": (PrincipalKind, PrincipalKind.UNKNOWN),
    "address_source": (AddressSource, AddressSource.UNKNOWN),
}
"""Enum fields, and what stands for a symbol that only a newer version knows (the Avro default)."""


def recorded_event(row: Mapping[str, Any]) -> RecordedEvent:
    """Return the event of a row of `events`.

    A row that breaks the contract was stored all the same, so it is shown as it stands rather than
    hidden: only a symbol of a newer version becomes the one that the contract keeps for it.
    """
    values = {name: row[name] for name, _ in EVENT_COLUMNS}
    for name in _IDENTITIES:
        if values[name] is not None:
            values[name] = str(values[name])
    values["attributes"] = tuple(map(_pair, values["attributes"]))
    try:
        return RecordedEvent(**values)
    except ValidationError:
        return RecordedEvent.model_construct(**{**values, **_known_symbols(values)})


def stored_event(row: Mapping[str, Any]) -> StoredEvent:
    """Return a row of `events` with where it came from."""
    return StoredEvent(
        event=recorded_event(row),
        partition=row["kafka_partition"],
        offset=row["kafka_offset"],
        stored_at=row["stored_at"],
        schema_fingerprint=row["schema_fingerprint"],
    )


def _pair(pair: Any) -> tuple[str, str]:
    """Named tuples come back as mappings from one interface and as tuples from another."""
    if isinstance(pair, dict):
        return pair["name"], pair["value"]
    name, value = pair
    return name, value


def _known_symbols(values: Mapping[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for name, (symbols, other) in _ENUMS.items():
        text = values[name]
        if text is None:
            continue
        try:
            known[name] = symbols(text)
        except ValueError:
            known[name] = text if other is None else other
    return known
