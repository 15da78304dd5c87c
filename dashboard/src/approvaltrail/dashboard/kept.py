"""Answers kept for some seconds and shared: one asks; whoever wants the same meanwhile waits.

Nothing is copied: what is kept must never be changed by those who get it. A failure is not kept.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

Answer = TypeVar("Answer")


@dataclass(slots=True)
class _Held:
    until: float
    answer: Future[Any] = field(default_factory=Future)

    def spent(self, now: float) -> bool:
        return self.answer.done() and now >= self.until


class Kept:
    """Keeps at most so many answers, the oldest forgotten first. Any thread may ask."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = Lock()
        self._held: OrderedDict[Hashable, _Held] = OrderedDict()

    def get(self, key: Hashable, seconds: float, ask: Callable[[], Answer]) -> Answer:
        """Return the answer that is kept under a key, asking where none is or it is too old."""
        held, first = self._place(key, seconds)
        if first:
            self._fill(key, held, ask)
        answer: Answer = held.answer.result()
        return answer

    def _place(self, key: Hashable, seconds: float) -> tuple[_Held, bool]:
        with self._lock:
            now = self._clock()
            held = self._held.get(key)
            if held is not None and not held.spent(now):
                return held, False
            held = self._held[key] = _Held(now + seconds)
            self._held.move_to_end(key)
            while len(self._held) > self._most:
                self._held.popitem(last=False)
            return held, True

    def _fill(self, key: Hashable, held: _Held, ask: Callable[[], Any]) -> None:
        try:
            held.answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - whoever waits is told, all alike
            with self._lock:
                if self._held.get(key) is held:
                    del self._held[key]
            held.answer.set_exception(error)
