"""Addresses as the role on-call sees them: which network, and whether two are the same.

Masked where answers leave the store, so no page can forget it. The network says enough to tell an
office from elsewhere; the mark behind it is the same for the same address (an HMAC under a key of
this dashboard's), so "another address" stays visible and nobody can try addresses out.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from approvaltrail.dashboard.access.viewer import Role
from approvaltrail.schemas.events import RecordedEvent
from approvaltrail.store.answers import Difference

ADDRESS_FIELDS: Final = ("peer_address", "client_address")
_MARK_BYTES: Final = 2
_KEPT_OCTETS: Final = 2
_KEPT_GROUPS: Final = 2
Answer = TypeVar("Answer")


def masked(address: str | None, role: Role, key: bytes = b"") -> str | None:
    """Return an address as a role may see it: `203.0.x.x·5c1e`, or whole to an investigator."""
    if address is None or role is Role.INVESTIGATOR:
        return address
    mark = hmac.new(key, address.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return f"{_network(address)}·{mark.digest()[:_MARK_BYTES].hex()}"


def masked_event(event: RecordedEvent, role: Role, key: bytes = b"") -> RecordedEvent:
    """Return an event with its addresses as a role may see them."""
    if role is Role.INVESTIGATOR:
        return event
    update = {name: masked(getattr(event, name), role, key) for name in ADDRESS_FIELDS}
    return event.model_copy(update=update)


def masked_answer(answer: Answer, role: Role, key: bytes = b"") -> Answer:
    """Return an answer of the store with every address in it as a role may see it."""
    if role is Role.INVESTIGATOR:
        return answer
    return _within(answer, role, key)  # type: ignore[no-any-return]


def _within(value: Any, role: Role, key: bytes) -> Any:
    match value:
        case RecordedEvent():
            return masked_event(value, role, key)
        case Difference(field=name) if name in ADDRESS_FIELDS:
            ends = (value.accepted, value.presented)
            accepted, presented = (masked(one, role, key) for one in ends)
            return replace(value, accepted=accepted, presented=presented)
        case tuple():
            return tuple(_within(one, role, key) for one in value)
        case dict():
            return {name: _within(one, role, key) for name, one in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            held = {one.name: getattr(value, one.name) for one in fields(value)}
            changed = {name: _within(one, role, key) for name, one in held.items()}
            return replace(value, **changed)
        case _:
            return value


def _network(address: str) -> str:
    try:
        known = ipaddress.ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return "masked"
    if isinstance(known, ipaddress.IPv6Address) and known.ipv4_mapped:
        known = known.ipv4_mapped
    if isinstance(known, ipaddress.IPv4Address):
        return ".".join(str(known).split(".")[:_KEPT_OCTETS]) + ".x.x"
    return ":".join(known.exploded.split(":")[:_KEPT_GROUPS]) + ":…"
