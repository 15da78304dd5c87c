"""In which fields a presentation differs from the accepting call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from approvaltrail.schemas.events import AddressSource, PrincipalKind
from approvaltrail.store.answers import Difference

if TYPE_CHECKING:
    from approvaltrail.schemas.events import RecordedEvent

COMPARED: Final = (
    "tenant",
    "principal",
    "principal_kind",
    "credential_id",
    "session_id",
    "client_address",
    "client_name",
    "tool",
    "target",
    "action",
    "plan_hash",
)
_SELF_DECLARED: Final = frozenset({"client_name"})


def differences(accepted: RecordedEvent, presented: RecordedEvent) -> tuple[Difference, ...]:
    """Compare the two calls field by field.

    A value that one side does not know is shown beside the other's, but is not to be trusted as a
    difference: a refusal may come before the server knew it.
    """
    found = []
    for field in COMPARED:
        before, after = _known(accepted, field), _known(presented, field)
        if before != after:
            trusted = before is not None and after is not None and field not in _SELF_DECLARED
            if field == "client_address":
                trusted = trusted and _address_known(accepted) and _address_known(presented)
            found.append(Difference(field=field, accepted=before, presented=after, trusted=trusted))
    return tuple(found)


def _known(event: RecordedEvent, field: str) -> str | None:
    value = getattr(event, field)
    unknown = value is None or (field == "principal_kind" and value == PrincipalKind.UNKNOWN)
    return None if unknown else str(value)


def _address_known(event: RecordedEvent) -> bool:
    return event.address_source is not AddressSource.UNKNOWN
