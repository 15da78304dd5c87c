"""The words for what happened: every cause and outcome as a person would say it."""

from __future__ import annotations

from typing import Final

from approvaltrail.schemas.events import AddressSource, EventType, Outcome, Reason, RecordedEvent
from approvaltrail.schemas.messages import DeadLetterCause
from approvaltrail.store.answers import StoredEvent

REASONS: Final = {
    Reason.MISSING_TOKEN: "no token",
    Reason.MALFORMED_TOKEN: "not a token",
    Reason.BAD_SIGNATURE: "forged signature",
    Reason.UNKNOWN_KEY: "unknown key",
    Reason.EXPIRED: "expired",
    Reason.WRONG_TENANT: "wrong tenant",
    Reason.WRONG_TOOL: "wrong tool",
    Reason.WRONG_TARGET: "wrong target",
    Reason.PLAN_CHANGED: "plan changed",
    Reason.TARGET_UNCONFIRMED: "target not confirmed",
    Reason.PLAN_UNAVAILABLE: "plan could not be made",
    Reason.ALREADY_USED: "already used",
    Reason.PREDATES_LEDGER: "older than the ledger",
    Reason.LEDGER_UNAVAILABLE: "ledger unreachable",
    Reason.LEDGER_FULL: "ledger full",
    Reason.NOT_RECORDED: "could not be recorded",
    Reason.OTHER: "other cause",
}

FORGED_OR_MISDIRECTED: Final = (
    Reason.MALFORMED_TOKEN,
    Reason.BAD_SIGNATURE,
    Reason.UNKNOWN_KEY,
    Reason.WRONG_TENANT,
    Reason.WRONG_TOOL,
    Reason.WRONG_TARGET,
    Reason.PLAN_CHANGED,
)
"""Refusals that honest clients seldom cause."""

DEAD_LETTER_CAUSES: Final = {
    DeadLetterCause.EMPTY: "empty message",
    DeadLetterCause.BAD_FRAMING: "not framed as an event",
    DeadLetterCause.UNKNOWN_SCHEMA: "unknown schema version",
    DeadLetterCause.UNDECODABLE: "cannot be decoded",
    DeadLetterCause.INVALID_VALUE: "a value breaks the contract",
    DeadLetterCause.TIME_OUT_OF_RANGE: "time out of range",
    DeadLetterCause.REFUSED_BY_STORE: "refused by the store",
}

_ENDED: Final = {
    Outcome.SUCCEEDED: "the work succeeded",
    Outcome.FAILED: "the work failed",
    Outcome.UNKNOWN: "whether the work was done is unknown",
}

_ADDRESS: Final = {
    AddressSource.PEER: "the connection itself",
    AddressSource.TRUSTED_PROXY: "via trusted proxy",
    AddressSource.UNKNOWN: "source unknown",
}


_FIELDS: Final = {"credential_id": "credential", "session_id": "session"}


def field(name: str) -> str:
    """Name a field of the contract as pages do."""
    return _FIELDS.get(name, name.replace("_", " "))


def outcome(event: RecordedEvent, *, reuse: bool = False) -> str:
    """Say what came of a presentation: `refused: expired`, `replayed`, `accepted again`."""
    if event.event_type is EventType.REFUSED and event.reason is not None:
        return f"refused: {REASONS[event.reason]}"
    if event.event_type is EventType.COMPLETED and event.outcome is not None:
        return f"completed: {event.outcome.value}"
    if event.event_type is EventType.ACCEPTED and reuse:
        return "accepted again"
    return event.event_type.value


def ended(completion: StoredEvent | None) -> str:
    """Say whether the accepted work was done."""
    if completion is None or completion.event.outcome is None:
        return "outcome unknown"
    return _ENDED[completion.event.outcome]


def address_trust(source: AddressSource) -> str:
    """Say how far a client address may be believed."""
    return _ADDRESS[source]


def caller(event: RecordedEvent) -> str | None:
    """Name the caller by the best that is known, or None."""
    return event.principal or event.credential_id or event.client_address or event.peer_address


def listed(items: list[str] | tuple[str, ...]) -> str:
    """Join words: `a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))
