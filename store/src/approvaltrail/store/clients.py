"""Clients that are lent to one caller at a time and kept for the next.

A client kept for each thread outlives its thread and is never found again; a process that starts a
thread for each piece of work would hold ever more of them.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_IDLE: Final = 16
"""More are made while more are in use at once, and closed when they come back."""


class Clients:
    """Makes clients when none is idle, and keeps at most `_MOST_IDLE` that are."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._guard = threading.Lock()
        self._idle: list[Any] = []
        self._closings = 0

    @contextmanager
    def lent(self) -> Iterator[Any]:
        """Lend a client that nobody else uses meanwhile."""
        with self._guard:
            closings = self._closings
            # the one used last comes first: its connection is the likeliest to be alive
            client = self._idle.pop() if self._idle else None
        if client is None:
            client = self._connect()
        try:
            yield client
        finally:
            self._take_back(client, closings)

    def close(self) -> None:
        """Close the idle clients now, and those in use as soon as they come back."""
        with self._guard:
            self._closings += 1
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()

    def _take_back(self, client: Any, closings: int) -> None:
        with self._guard:
            kept = closings == self._closings and len(self._idle) < _MOST_IDLE
            if kept:
                self._idle.append(client)
        if not kept:
            client.close()
