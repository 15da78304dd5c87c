"""Whether another process goes by this sink's name, and takes its partitions again and again.

A named member that joins replaces the one of its name (KIP-345). aiokafka does not send the name
with heartbeats and commits, so that the one replaced learns only that its member id is unknown,
joins again and replaces the other in turn. Nothing is stored twice, but neither gets anywhere.
Whoever sees this often enough ends. An orphan has lost its place more often than the process that
was started after it, and so is the first to end.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from aiokafka.errors import KafkaError

from approvaltrail.consumers.errors import InstanceTakenError

_LOSSES = 5
_WITHIN_SECONDS = 60.0
"""Rebalances keep the member id, and an expired session changes it no more than this."""


class InstanceWatch:
    """Counts how often the group made a new member of this sink."""

    def __init__(self, instance: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._instance = instance
        self._clock = clock
        self._member_id = ""
        self._losses: deque[float] = deque(maxlen=_LOSSES)

    def joined(self, member_id: str) -> None:
        """Note under which member id partitions were given."""
        if self._member_id and member_id != self._member_id:
            self._losses.append(self._clock())
        self._member_id = member_id

    def check(self) -> None:
        """Raise InstanceTakenError when another process goes by the name of this sink."""
        if len(self._losses) == _LOSSES and self._clock() - self._losses[0] < _WITHIN_SECONDS:
            self._taken()

    def failed(self, error: KafkaError) -> None:
        """Raise InstanceTakenError when this error of the group can mean nothing else.

        aiokafka does not know the broker's FENCED_INSTANCE_ID: it tells it as an unexpected error,
        keeps the member id that was fenced, and never gets any further.
        """
        if type(error) is KafkaError:
            self._taken()

    def _taken(self) -> None:
        if self._instance is not None:
            raise InstanceTakenError(
                f"another sink of the group goes by the name {self._instance!r} "
                "(APPROVALTRAIL_SINK_INSTANCE): end it, or give each a name of its own"
            )
