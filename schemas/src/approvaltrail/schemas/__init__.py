"""The contract that every part shares: events, their Avro encoding, topics and messages."""

from __future__ import annotations

from approvaltrail.schemas.errors import (
    ContractError,
    RecorderUnavailableError,
    SettingsError,
    UndecodableError,
)
from approvaltrail.schemas.events import (
    AddressSource,
    ApprovalEvent,
    EventType,
    NonceTrust,
    Outcome,
    PrincipalKind,
    Reason,
    RecordedEvent,
)
from approvaltrail.schemas.identity import new_event_id
from approvaltrail.schemas.recorder import EventRecorder, Recorded

__all__ = [
    "AddressSource",
    "ApprovalEvent",
    "ContractError",
    "EventRecorder",
    "EventType",
    "NonceTrust",
    "Outcome",
    "PrincipalKind",
    "Reason",
    "Recorded",
    "RecordedEvent",
    "RecorderUnavailableError",
    "SettingsError",
    "UndecodableError",
    "new_event_id",
]
