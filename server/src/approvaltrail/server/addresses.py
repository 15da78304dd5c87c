"""Where a request came from, and how far that may be believed.

The peer is the other end of the connection. Behind proxies, X-Forwarded-For grows to the right:
each proxy appends whom it saw. So the list is read from the right, past the proxies that are
trusted, to the first hop that is not: all to its left was written by it and proves nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from approvaltrail.schemas import AddressSource

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
MAXIMUM_HOPS = 32
"""A longer list is not read."""


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

    def origin(self, peer: str | None, forwarded: Sequence[str]) -> Origin:
        """Return the origin of a request.

        Args:
            peer: the other end of the connection.
            forwarded: the X-Forwarded-For headers in their order.
        """
        address = _address(peer or "")
        if address is None:
            return Origin()
        if not self._trusts(address):
            return Origin(peer=str(address), client=str(address), source=AddressSource.PEER)
        hops = [hop for header in forwarded for hop in header.split(",")]
        if len(hops) > MAXIMUM_HOPS:
            hops = []
        return self._first_untrusted(address, hops)

    def _first_untrusted(self, peer: _Address, hops: list[str]) -> Origin:
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
