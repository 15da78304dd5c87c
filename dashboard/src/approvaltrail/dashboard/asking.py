"""How the store is asked: over a few connections that stay, and ahead of when a page needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import BoundedSemaphore
from typing import Any, Final, ParamSpec

from approvaltrail.dashboard.kept import Kept
from approvaltrail.dashboard.settings import DashboardSettings
from approvaltrail.store.connection import Address, Rows, Settings, Store
from approvaltrail.store.errors import StoreRefusedError
from approvaltrail.store.queries import Queries

CONNECTIONS: Final = 8
"""Statements that run at once for all who look; more wait in line."""
_AHEAD: Final = 8
_WAITING: Final = 64
"""Questions asked ahead; beyond so many, a page asks when it needs the answer."""
_KEPT_ANSWERS: Final = 512
"""Past this many the oldest answers are forgotten and asked again."""
_TIMEOUT_SECONDS: Final = 30.0
"""A page that takes longer says that the store does not answer."""
_READONLY: Final = 164
"""ClickHouse's code for a setting that a reading user may not change."""
Asked = ParamSpec("Asked")


class SharedStore(Store):
    """A store whose connections belong to a few threads of its own, whichever thread asks.

    Streamlit draws every run in a new thread, and a `Store` connects for each thread: a handshake
    a run, and a connection that stays open after it.
    """

    def __init__(self, dsn: str, *, read_only: bool) -> None:
        super().__init__(Address.of(dsn), read_only=read_only, timeout_seconds=_TIMEOUT_SECONDS)
        self._askers = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="asks-store")

    def query(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
    ) -> Rows:
        """Run a statement that returns rows, as `Store.query` does."""
        return self._askers.submit(super().query, sql, parameters, settings).result()

    def close(self) -> None:
        """Close all connections."""
        self._askers.shutdown(wait=False, cancel_futures=True)
        super().close()


class Asking:
    """One store that is asked: its queries, the answers kept, and what is asked ahead."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.kept = Kept(_KEPT_ANSWERS)
        self._ahead = ThreadPoolExecutor(_AHEAD, thread_name_prefix="asks-ahead")
        self._places = BoundedSemaphore(_WAITING)

    def soon(self, ask: Callable[Asked, object], *args: Asked.args, **named: Asked.kwargs) -> None:
        """Begin to ask what a page will want in a moment; its answer, or failure, is kept there."""
        if not self._places.acquire(blocking=False):
            return

        def asked() -> None:
            try:
                with suppress(Exception):  # the page asks again, and is told
                    ask(*args, **named)
            finally:
                self._places.release()

        self._ahead.submit(asked)


def open_asking(settings: DashboardSettings) -> Asking:
    """Open the store that the settings name, to read only.

    A user whom the server itself holds to reading may not even ask for it.

    Raises:
        StoreError: it does not answer, or the DSN cannot be read.
    """
    store = SharedStore(settings.dsn(), read_only=True)
    try:
        store.ping()
    except StoreRefusedError as refusal:
        store.close()
        if refusal.code != _READONLY:
            raise
        store = SharedStore(settings.dsn(), read_only=False)
    except BaseException:
        store.close()
        raise
    return Asking(Queries(store, bounds=settings.bounds()))
