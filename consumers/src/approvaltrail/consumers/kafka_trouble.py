"""One sentence a minute in place of the lines that aiokafka writes while it cannot reach Kafka.

It tries again several times a second, and says so each time, per connection and per node.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Final

import structlog

_AGAIN_AFTER_SECONDS: Final = 60.0
_TROUBLE: Final = re.compile(
    r"Unable connect to|Unable to request metadata|Unable to update metadata|"
    r"Failed fetch (?:messages|offsets) from|Cannot send |Could not send |"
    r"(?:FindCoordinator|Group Coordinator) Request failed"
)
_PLACE: Final = re.compile(r"\('(?P<host>[^']+)', (?P<port>\d+)\)|\"(?P<server>[^\"\s]+:\d+)\"")
_NODE: Final = re.compile(r"(?:node with id |from \[?)(?P<node>\d+)")
_log = structlog.stdlib.get_logger(__name__)


class KafkaTroubleFilter(logging.Filter):
    """Keeps aiokafka's lines on a lost connection from a handler, and tells them in sum.

    The first is told at once, further ones at most once a minute, with how many there were.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._told_at: float | None = None
        self._untold = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether the handler should take this line as it is."""
        if record.name.partition(".")[0] != "aiokafka":
            return True
        text = record.getMessage()
        if not _TROUBLE.match(text):
            return True
        self._untold += 1
        now = self._clock()
        if self._told_at is None or now - self._told_at >= _AGAIN_AFTER_SECONDS:
            self._told_at, lines, self._untold = now, self._untold, 0
            _log.warning(
                "kafka_unreachable",
                what=f"{_where(text)} does not answer as it should",
                next="it is tried again by itself: check that Kafka runs, that it is reachable at "
                "this address, and that this user may sign in",
                lines=lines,
            )
        return False


def _where(text: str) -> str:
    place, node = _PLACE.search(text), _NODE.search(text)
    if place:
        return f"Kafka at {place['server'] or place['host'] + ':' + place['port']}"
    return f"Kafka's node {node['node']}" if node else "Kafka"
