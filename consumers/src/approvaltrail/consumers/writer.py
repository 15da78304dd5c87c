"""Writes to the store, in threads of their own, again and again until they are done."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import structlog

from approvaltrail.consumers.backoff import Backoff
from approvaltrail.consumers.errors import BatchAbandonedError
from approvaltrail.consumers.metrics import SinkMetrics
from approvaltrail.store.connection import Store
from approvaltrail.store.errors import StoreError, StoreRefusedError, StoreUnavailableError

_THREADS = 4
"""Two for events, one for heartbeats and seals, one for what is read beside them."""
_AWAY_SECONDS = 1.0
"""The longest wait for a store that does not answer: asking costs it nothing, and it may be back.
One that refuses is left alone for longer: it may have too much to do."""
_log = structlog.stdlib.get_logger(__name__)

Write = Callable[[Store], None]
Wanted = Callable[[], bool]
GivesUp = Callable[[StoreError, int], bool]
"""Whether a failure, at its so-manieth attempt, is the caller's to deal with."""


def never(_error: StoreError, _attempt: int) -> bool:
    """Try for as long as the write is wanted."""
    return False


class StoreWriter:
    """Every write of ours may run twice, so whatever failed is said again, with growing waits."""

    def __init__(self, store: Store, metrics: SinkMetrics, *, longest_wait_seconds: float) -> None:
        self._store = store
        self._metrics = metrics
        self._longest_wait_seconds = longest_wait_seconds
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="store")
        self._failing_since: float | None = None
        self._why = ""

    @property
    def trouble(self) -> str | None:
        """What keeps the store from taking writes, in a sentence; None when it takes them."""
        if self._failing_since is None:
            return None
        seconds = time.monotonic() - self._failing_since
        return f"the store has not taken writes for {seconds:.0f} s: {self._why}"

    async def once(self, write: Write) -> None:
        """Write, and raise what comes of it."""
        loop = asyncio.get_running_loop()
        started = time.monotonic()
        await loop.run_in_executor(self._threads, write, self._store)
        self._metrics.insert_seconds.observe(time.monotonic() - started)
        if self._failing_since is not None:
            seconds = time.monotonic() - self._failing_since
            _log.info("store_takes_writes_again", after_seconds=round(seconds, 1))
            self._failing_since = None

    async def until_done(self, write: Write, *, wanted: Wanted, gives_up: GivesUp = never) -> None:
        """Write until it succeeds.

        Raises:
            BatchAbandonedError: it failed, and is not wanted any more.
            StoreError: it failed in a way that `gives_up` leaves to the caller.
        """
        backoff = Backoff(longest_seconds=self._longest_wait_seconds)
        while True:
            try:
                await self.once(write)
            except (StoreUnavailableError, StoreRefusedError) as error:
                if gives_up(error, backoff.attempts + 1):
                    raise
                self.note(error)
                away = isinstance(error, StoreUnavailableError)
                wait = backoff.next_seconds(_AWAY_SECONDS if away else math.inf)
            else:
                return
            if not wanted():
                raise BatchAbandonedError("its partitions were given to somebody else")
            await asyncio.sleep(wait)

    def close(self) -> None:
        """Give up the threads; a write on its way is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def note(self, error: StoreError) -> None:
        """Take in that the store does not take what it ought to."""
        self._why = str(error)
        why = "refused" if isinstance(error, StoreRefusedError) else "unknown_outcome"
        self._metrics.insert_retries.labels(why).inc()
        if self._failing_since is None:
            self._failing_since = time.monotonic()
            _log.warning("store_does_not_take_writes", why=self._why)
