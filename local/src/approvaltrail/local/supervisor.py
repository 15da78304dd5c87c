"""Starting parts in their order, keeping them running, and stopping them in reverse."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from approvaltrail.local.keeper import Keeper, PartState, PartStatus
from approvaltrail.local.parts import Part


class Supervisor:
    """All parts of one `up`. Parts of one stage start together; stages follow each other."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[PartStatus], None]] = []
        self._keepers: list[Keeper] = []
        self._lock = threading.Lock()

    def listen(self, listener: Callable[[PartStatus], None]) -> None:
        """Have a function called at each change of a part, from several threads, one at a time."""
        self._listeners.append(listener)

    @property
    def statuses(self) -> tuple[PartStatus, ...]:
        """How every part is doing, in the order in which they were started."""
        return tuple(keeper.status for keeper in tuple(self._keepers))

    @property
    def ready(self) -> bool:
        """Whether every part is ready."""
        return all(status.state is PartState.READY for status in self.statuses)

    def start(self, parts: Sequence[Part]) -> None:
        """Start one stage and return once all of it is ready.

        On an error, everything that was started before is stopped and the first error is raised.
        """
        keepers = [Keeper(part, self._changed) for part in parts]
        self._keepers += keepers
        pool = ThreadPoolExecutor(max(1, len(keepers)))
        try:
            for future in as_completed([pool.submit(keeper.start) for keeper in keepers]):
                future.result()
        except BaseException:
            self.stop()  # what is just starting ends with it
            raise
        finally:
            pool.shutdown()

    def stop(self) -> None:
        """Stop every part, the last one started first; called twice, it does nothing more."""
        while self._keepers:
            keeper = self._keepers[-1]
            keeper.stop()
            self._keepers.pop()

    def _changed(self, status: PartStatus) -> None:
        with self._lock:
            for listener in self._listeners:
                listener(status)
