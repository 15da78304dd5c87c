"""The one thread that writes a journal: it takes what has gathered and commits it in one go.

While a commit is on its way to the disk, callers gather for the next: the busier, the larger the
batches, and no caller waits for a timer.
"""

from __future__ import annotations

import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from approvaltrail.producer.errors import Cause, JournalUnavailableError
from approvaltrail.producer.log_events import Log
from approvaltrail.producer.waiting import Waiting, answer, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from approvaltrail.producer.metrics import JournalMetrics
    from approvaltrail.producer.recording import Recording

_BATCH_CALLERS: Final = 2_000
_BATCH_BYTES: Final = 4 * 1024 * 1024
_TICK_SECONDS: Final = 0.5
_SHORTEST_WAIT_SECONDS: Final = 0.01
_PROBE_SECONDS: Final = 0.25
_UNHEALABLE: Final = frozenset({Cause.DAMAGED})
"""After damage a write may succeed by chance; only a restart looks at the whole file."""

log = structlog.get_logger("approvaltrail.producer")


class Writer:
    """Owns the queue and the thread; knows why nothing can be recorded, when that is so."""

    def __init__(
        self,
        recording: Recording,
        *,
        queue_limit_bytes: int,
        metrics: JournalMetrics,
        on_commit: Callable[[], None],
    ) -> None:
        self._recording = recording
        self._queue_limit = queue_limit_bytes
        self._metrics = metrics
        self._on_commit = on_commit
        self._lock = threading.Lock()
        self._queue: list[Waiting] = []
        self._waiting_bytes = 0
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._in_flight: tuple[float, list[Waiting]] | None = None
        self._refusing: JournalUnavailableError | None = None
        self.trouble: JournalUnavailableError | None = None

    # --- callers' side

    def start(self) -> None:
        """Start the thread."""
        thread = threading.Thread(
            target=self._run, name="approvaltrail-journal-writer", daemon=True
        )
        thread.start()
        self._thread = thread

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def busy(self) -> bool:
        """Whether events are queued or on their way to the disk."""
        return self._in_flight is not None or bool(self._queue)

    def submit(self, waiting: Waiting, *, unverified: bool) -> None:
        """Queue a caller's events.

        Raises:
            JournalUnavailableError: they will not be recorded.
        """
        with self._lock:
            self._refuse_now(waiting.size, unverified=unverified)
            self._queue.append(waiting)
            self._waiting_bytes += waiting.size
        if not self._wake.is_set():
            self._wake.set()

    def check(self) -> None:
        """Raise JournalUnavailableError if an event would not be recorded now."""
        self._refuse_now(self._recording.space.headroom, unverified=False)

    def refuse_from_now_on(self, reason: JournalUnavailableError) -> None:
        """Take no more events; those in the queue are still written."""
        with self._lock:
            self._refusing = reason

    def stop(self, timeout_seconds: float) -> bool:
        """Write what is queued, seal, and end the thread; say whether it ended in time."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout_seconds)
        if self.alive:
            self.watch(0)  # nobody looks after it from now on: those who wait are answered
        return not self.alive

    def watch(self, stall_seconds: float) -> None:
        """Refuse, from another thread, those who wait for a disk that does not answer."""
        in_flight = self._in_flight
        if in_flight is None:
            return
        waited = time.monotonic() - in_flight[0]
        if waited < stall_seconds:
            return
        self._set_trouble(
            JournalUnavailableError(
                Cause.STALLED,
                f"the disk under {self._recording.path.file} has not answered a write for "
                f"{waited:.1f} s; whether these events are on it is unknown. Look at the "
                "disk: recording resumes by itself when it answers",
            )
        )
        with self._lock:
            queued, self._queue = self._queue, []
            self._waiting_bytes -= sum(waiting.size for waiting in queued)
        if self.trouble is not None:
            refuse([*in_flight[1], *queued], self.trouble)

    def _refuse_now(self, size: int, *, unverified: bool) -> None:
        if self._refusing is not None:
            raise self._refusing.again()
        if self.trouble is not None:
            raise self.trouble.again()
        waiting = self._waiting_bytes + size
        if waiting > self._queue_limit:
            raise JournalUnavailableError(
                Cause.OVERLOADED,
                f"{self._waiting_bytes} bytes of events wait for the journal "
                f"{self._recording.path.file}, the bound is {self._queue_limit}; nothing was "
                "recorded. Retry shortly, or raise APPROVALTRAIL_QUEUE_LIMIT_BYTES",
            )
        space = self._recording.space
        if not space.admits(waiting, unverified=unverified):
            share = unverified and space.admits(waiting, unverified=False)
            raise JournalUnavailableError(
                Cause.UNVERIFIED_SHARE if share else Cause.FULL,
                f"the journal {self._recording.path.file} has used {space.used} of {space.limit} "
                f"bytes{' and keeps the rest for verified tokens' if share else ''}; nothing was "
                "recorded. See that the broker is reachable, or raise "
                "APPROVALTRAIL_JOURNAL_LIMIT_BYTES: recording resumes as the broker acknowledges",
            )

    # --- the thread's side

    def _run(self) -> None:
        while not (self._stopping and not self._queue):
            self._wake.wait(_PROBE_SECONDS if self.trouble else self._patience())
            self._wake.clear()
            idle = True
            while batch := self._take():
                self._write(batch)
                idle = False
            self._keep_house(idle=idle)
        self._finish()

    def _patience(self) -> float:
        try:
            wait = self._recording.seconds_left()
        except Exception as error:  # noqa: BLE001
            self._internal(error)
            return _TICK_SECONDS
        return max(_SHORTEST_WAIT_SECONDS, min(_TICK_SECONDS, wait))

    def _take(self) -> list[Waiting]:
        with self._lock:
            size = taken = 0
            for waiting in self._queue:
                if taken == _BATCH_CALLERS or (taken and size + waiting.size > _BATCH_BYTES):
                    break
                size += waiting.size
                taken += 1
            if taken == len(self._queue):
                batch, self._queue = self._queue, []
            else:
                batch, self._queue = self._queue[:taken], self._queue[taken:]
        return batch

    def _write(self, batch: list[Waiting]) -> None:
        rows = [row for waiting in batch for row in waiting.rows]
        began = time.monotonic()
        self._in_flight = (began, batch)
        try:
            first, recorded_at = self._recording.write(rows)
        except JournalUnavailableError as error:
            self._set_trouble(error)
            refuse(batch, error)
        except Exception as error:  # noqa: BLE001 - one batch may fail, the thread may not
            refuse(batch, self._internal(error))
        else:
            answer(batch, first, recorded_at)
            self._metrics.committed(len(rows), time.monotonic() - began)
            self._on_commit()
        finally:
            self._in_flight = None
            with self._lock:
                self._waiting_bytes -= sum(waiting.size for waiting in batch)
        self._settle()

    def _settle(self) -> None:
        try:
            self._recording.settle()
        except Exception as error:  # noqa: BLE001
            self._internal(error)

    def _keep_house(self, *, idle: bool) -> None:
        try:
            if self.trouble is None:
                self._recording.keep_house(idle=idle)
            elif self.trouble.cause not in _UNHEALABLE:
                self._recording.probe()
                self._clear_trouble()
            if self.trouble is None and (summed := self._recording.record_sums(closing=False)):
                log.info(Log.UNRECORDED_SUMMED, refusals=summed)
                self._on_commit()
        except JournalUnavailableError as error:
            self._set_trouble(error)
        except Exception as error:  # noqa: BLE001
            self._internal(error)

    def _finish(self) -> None:
        try:
            if self.trouble is None:
                self._recording.record_sums(closing=True)
                self._recording.finish()
        except JournalUnavailableError as error:
            self._set_trouble(error)
        except Exception as error:  # noqa: BLE001
            self._internal(error)

    def _set_trouble(self, error: JournalUnavailableError) -> None:
        if self.trouble is None or self.trouble.cause is not error.cause:
            log.error(Log.JOURNAL_UNAVAILABLE, cause=error.cause.value, message=str(error))
            self._metrics.unavailable(error.cause)
        self.trouble = error

    def _clear_trouble(self) -> None:
        if self.trouble is not None:
            log.info(Log.JOURNAL_RECOVERED, cause=self.trouble.cause.value)
            self.trouble = None

    def _internal(self, error: Exception) -> JournalUnavailableError:
        # no traceback: some renderers print every frame's variables, and so the events
        where = traceback.extract_tb(error.__traceback__)[-1:]
        log.error(
            Log.WRITER_FAILED,
            error=type(error).__name__,
            where=[f"{Path(frame.filename).name}:{frame.lineno}" for frame in where],
        )
        return JournalUnavailableError(
            Cause.INTERNAL,
            f"the writer of {self._recording.path.file} failed ({type(error).__name__}); nothing "
            "of this batch was recorded. The next records are tried as usual; report this",
        )
