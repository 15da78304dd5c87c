"""Who waits for the writer, and how each is answered: coroutines and threads alike."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from approvaltrail.producer.errors import JournalUnavailableError
    from approvaltrail.producer.stamping import Row

Answer = tuple[int, int]
"""First number of the caller's events, and their time (µs since the epoch)."""


class ThreadOutcome:
    """An answer for a thread: a lock that the writer opens. Lighter than a condition."""

    __slots__ = ("_answer", "_error", "_gate")

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._gate.acquire()
        self._answer: Answer = (0, 0)
        self._error: Exception | None = None

    def done(self) -> bool:
        """Say whether the answer was given."""
        return not self._gate.locked()

    def set_result(self, answer: Answer) -> None:
        """Answer; the waiting thread goes on."""
        self._answer = answer
        self._gate.release()

    def set_exception(self, error: Exception) -> None:
        """Answer with an error."""
        self._error = error
        self._gate.release()

    def wait(self, timeout_seconds: float) -> Answer | None:
        """Wait for the answer; None if it did not come in time."""
        if not self._gate.acquire(timeout=timeout_seconds):
            return None
        self._gate.release()
        if self._error is not None:
            raise self._error
        return self._answer


Outcome = asyncio.Future[Answer] | ThreadOutcome


class Waiting:
    """One caller's events, from the queue to the answer."""

    __slots__ = ("loop", "outcome", "rows", "size")

    def __init__(
        self,
        rows: Sequence[Row],
        size: int,
        outcome: Outcome,
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self.rows = rows
        self.size = size
        self.outcome = outcome
        self.loop = loop


def answer(batch: Sequence[Waiting], first_sequence: int, recorded_at: int) -> None:
    """Tell every caller of a committed batch its numbers: one wake-up for each event loop."""
    sequence = first_sequence
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Outcome, Answer]]] = {}
    for waiting in batch:
        told = (sequence, recorded_at)
        sequence += len(waiting.rows)
        if waiting.loop is None:
            if not waiting.outcome.done():
                waiting.outcome.set_result(told)
        else:
            by_loop.setdefault(waiting.loop, []).append((waiting.outcome, told))
    for loop, pairs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            loop.call_soon_threadsafe(_set_results, pairs)


def refuse(batch: Sequence[Waiting], error: JournalUnavailableError) -> None:
    """Tell every caller of a batch that nothing was recorded."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Outcome]] = {}
    for waiting in batch:
        if waiting.loop is None:
            if not waiting.outcome.done():
                waiting.outcome.set_exception(error.again())
        else:
            by_loop.setdefault(waiting.loop, []).append(waiting.outcome)
    for loop, outcomes in by_loop.items():
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_set_errors, outcomes, error)


def _set_results(pairs: list[tuple[Outcome, Answer]]) -> None:
    for outcome, told in pairs:
        if not outcome.done():
            outcome.set_result(told)


def _set_errors(outcomes: list[Outcome], error: JournalUnavailableError) -> None:
    for outcome in outcomes:
        if not outcome.done():
            outcome.set_exception(error.again())
