"""Who calls, as the embedding server knows it; nothing here is taken from a token."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from approvaltrail.schemas import AddressSource, PrincipalKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller of one request: taken once, from the request's own context.

    `tenant` decides (a token of another tenant is refused); all else is recorded as it stands.
    `None` means unknown and differs from an empty text. `credential_id` is a keyed hash of the
    credential, never the credential. `client_name` is what the client says of itself.
    """

    tenant: str | None = None
    principal: str | None = None
    principal_kind: PrincipalKind = PrincipalKind.UNKNOWN
    credential_id: str | None = None
    session_id: str | None = None
    peer_address: str | None = None
    client_address: str | None = None
    address_source: AddressSource = AddressSource.UNKNOWN
    client_name: str | None = None
    request_id: str | None = None
    trace_id: str | None = None

    def values(self) -> dict[str, Any]:
        """Return the event's fields about the caller."""
        return {name: getattr(self, name) for name in _NAMES}


_NAMES = tuple(field.name for field in fields(Caller))


def nobody() -> Caller:
    """Return a caller of whom nothing is known: a server on its user's own machine."""
    return Caller()
