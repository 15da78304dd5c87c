"""One Metadata request, by hand: it tells who answers on a port.

A bare connect says nothing, and another Kafka may answer on a port that was taken meanwhile, so
readiness needs the cluster's id and the ids of its live nodes. Layout of version 4 of the request:
https://kafka.apache.org/protocol (Metadata API).
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

_METADATA = 3
_VERSION = 4
_CORRELATION = 7
_ANSWER_LIMIT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """A cluster as one of its brokers sees it."""

    cluster_id: str
    node_ids: frozenset[int]


def ask_cluster(host: str, port: int, timeout_seconds: float = 1.0) -> ClusterView | None:
    """Return the cluster behind a plaintext listener, None while nothing of the kind answers."""
    try:
        with socket.create_connection((host, port), timeout_seconds) as connection:
            connection.sendall(_request())
            return _parse(_read_answer(connection))
    except (OSError, struct.error, ValueError):
        return None


def _request() -> bytes:
    client = b"approvaltrail"
    head = struct.pack(">hhih", _METADATA, _VERSION, _CORRELATION, len(client)) + client
    body = head + struct.pack(">i?", 0, False)  # no topics, and create none
    return struct.pack(">i", len(body)) + body


def _read_answer(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as stream:
        (size,) = struct.unpack(">i", stream.read(4))
        if not 0 < size <= _ANSWER_LIMIT_BYTES:
            raise ValueError("not an answer of Kafka's")
        return stream.read(size)


def _parse(answer: bytes) -> ClusterView:
    position = 12  # behind correlation id, throttle time and the count of brokers

    def string() -> str:
        nonlocal position
        (length,) = struct.unpack_from(">h", answer, position)
        start = position + 2
        position = start + max(length, 0)
        return answer[start:position].decode()

    node_ids = set()
    for _ in range(struct.unpack_from(">i", answer, 8)[0]):
        node_ids.add(struct.unpack_from(">i", answer, position)[0])
        position += 4
        string()  # host
        position += 4  # port
        string()  # rack
    return ClusterView(cluster_id=string(), node_ids=frozenset(node_ids))
