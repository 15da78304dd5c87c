"""Ports on the loopback address."""

from __future__ import annotations

import socket

from approvaltrail.local.broker.configuration import HOST
from approvaltrail.local.broker.errors import PortTakenError


def free_ports(count: int) -> list[int]:
    """Return ports that are free now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((HOST, 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def check_free(port: int) -> None:
    """Raise PortTakenError when somebody listens on the port: quicker than a JVM that finds out."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java's server sockets do
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise port_taken(port) from error


def port_taken(port: int) -> PortTakenError:
    """Return the error that says so."""
    return PortTakenError(
        f"port {port} on {HOST} is taken by another program: "
        "choose another port, or none and a free one is picked"
    )
