"""Where a request came from, and how far that may be believed.

The peer is the other end of the connection. Behind proxies, X-Forwarded-For grows to the right:
each proxy appends whom it saw. So the list is read from the right, past the proxies that are
trusted, to the first hop that is not: all to its left was written by it and proves nothing.

`Forwarded` (RFC 7239) says the same in other words. One of the two headers is read, the one that
the operator's proxies write: the other comes from the client, through a proxy that ignores it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from approvaltrail.schemas import AddressSource

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
MAXIMUM_HOPS = 32
"""A longer list is not read."""
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PAIR: Final = re.compile(
    rf"""[ \t]*(?:(?P<name>{_TOKEN})=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<token>{_TOKEN})))?"""
    r"[ \t]*(?P<end>[;,]|$)"
)


class ProxyHeader(StrEnum):
    """In which header the operator's proxies name the hop before them."""

    X_FORWARDED_FOR = "x-forwarded-for"
    FORWARDED = "forwarded"

    def hops(self, headers: Sequence[str]) -> list[str]:
        """Return what this header's values name, in their order; nothing where they are no list."""
        text = ",".join(headers)
        if not text:
            return []
        return text.split(",") if self is ProxyHeader.X_FORWARDED_FOR else _forwarded(text)


def _forwarded(text: str) -> list[str]:
    """Return the `for` of each element of a `Forwarded` list, empty where an element has none.

    https://www.rfc-editor.org/rfc/rfc7239#section-4
    """
    hops, hop, place = [], "", 0
    while True:
        pair = _PAIR.match(text, place)
        if pair is None:
            return []
        if (pair["name"] or "").lower() == "for":
            hop = pair["token"] or re.sub(r"\\(.)", r"\1", pair["quoted"] or "")
        if pair["end"] != ";":
            hops.append(hop)
            hop = ""
        if not pair["end"]:
            return hops
        place = pair.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A request's origin."""

    peer: str | None = None
    client: str | None = None
    source: AddressSource = AddressSource.UNKNOWN


class TrustedProxies:
    """The proxies whose word on the hop before them counts."""

    def __init__(self, networks: Iterable[_Network] = ()) -> None:
        self._networks = tuple(networks)

    @classmethod
    def parse(cls, texts: Iterable[str]) -> TrustedProxies:
        """Read addresses and networks.

        Raises:
            ValueError: a text is neither.
        """
        return cls(ipaddress.ip_network(text, strict=False) for text in texts)

    def origin(self, peer: str | None, hops: Sequence[str]) -> Origin:
        """Return the origin of a request.

        Args:
            peer: the other end of the connection.
            hops: what the proxies' header names, in its order.
        """
        address = _address(peer or "")
        if address is None:
            return Origin()
        if not self._trusts(address):
            return Origin(peer=str(address), client=str(address), source=AddressSource.PEER)
        return self._first_untrusted(address, hops if len(hops) <= MAXIMUM_HOPS else ())

    def _first_untrusted(self, peer: _Address, hops: Sequence[str]) -> Origin:
        found: _Address | None = None
        for hop in reversed(hops):
            found = _address(hop.strip())
            if found is None or not self._trusts(found):
                break
        if found is None:  # nothing was forwarded, or what was is no address
            return Origin(peer=str(peer))
        return Origin(peer=str(peer), client=str(found), source=AddressSource.TRUSTED_PROXY)

    def _trusts(self, address: _Address) -> bool:
        return any(
            address.version == network.version and address in network for network in self._networks
        )


def _address(text: str) -> _Address | None:
    """Read an address, also with a port; an IPv4 address in IPv6's clothes is an IPv4 address."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = getattr(found, "ipv4_mapped", None)
    return mapped if isinstance(mapped, ipaddress.IPv4Address) else found
