"""The connection to the store: clickhouse-connect behind a small seam.

What crosses the seam: statements with server-side parameters, rows, and our own errors. What does
not: the engine's error texts (they quote rows), URLs, statements and parameters in error texts
(clickhouse-connect and urllib3 put them there), zone-less times (the client reads them as the
host's time when inserting and as the server's when querying), and silent resending of inserts.
"""

from __future__ import annotations

import logging
import struct
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import unquote, urlsplit

import clickhouse_connect
from clickhouse_connect.driver.exceptions import (
    ClickHouseError,
    DatabaseError,
    OperationalError,
    ProgrammingError,
)
from clickhouse_connect.driver.summary import QuerySummary

from approvaltrail.store.clients import Clients
from approvaltrail.store.errors import InvalidDsnError, StoreRefusedError, StoreUnavailableError
from approvaltrail.store.rows_file import rows_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_INTERFACES: Final = {
    "http": "http",
    "https": "https",
    "clickhouse": "http",
    "clickhouses": "https",
}
CHDB_PATTERNS: Final = frozenset("*?{}")
"""chDB takes these in a folder's name for a pattern of files, or for the beginning of settings."""
_NOISY_LOGGERS: Final = ("urllib3.connectionpool", "clickhouse_connect")
_READ_ONLY: Final = {"readonly": 2}
_UNREADABLE: Final = (ValueError, LookupError, EOFError, ArithmeticError, TypeError, struct.error)
"""What the client's parser may raise over bytes that are no answer."""
_HELPERS: Final = 3
"""Threads that ask beside the caller's own; a question rarely has more independent parts."""

Settings = Mapping[str, int | str]


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query returned."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]] = field(repr=False)

    def scalar(self) -> Any:
        """Return the first value of the first row."""
        return self.rows[0][0]

    def dicts(self) -> list[dict[str, Any]]:
        """Return each row by its columns' names."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Address:
    """A DSN taken apart."""

    interface: str
    host: str | None
    port: int | None
    user: str | None
    password: str | None = field(repr=False)
    database: str | None
    folder: str | None = None
    """Of an engine within this process."""

    @classmethod
    def of(cls, dsn: str) -> Self:
        """Read a DSN. Raises InvalidDsnError, which never repeats it."""
        try:
            parts = urlsplit(dsn)
            port = parts.port
        except ValueError:
            raise InvalidDsnError(
                "the store's DSN cannot be read: check its host and port"
            ) from None
        if parts.scheme == "chdb":
            if parts.netloc or parts.path in ("", "/"):
                raise InvalidDsnError("a chdb DSN names a folder, as chdb:///var/lib/trail")
            if CHDB_PATTERNS & set(folder := unquote(parts.path)):
                raise InvalidDsnError(
                    "the folder of a chdb DSN has one of * ? { } in its path, which chDB takes for "
                    "a pattern: name another folder"
                )
            database = dict(pair.partition("=")[::2] for pair in parts.query.split("&")).get(
                "database"
            )
            return cls("chdb", None, None, None, None, database or None, folder)
        interface = _INTERFACES.get(parts.scheme)
        if interface is None or not parts.hostname:
            raise InvalidDsnError(
                "the store's DSN is http(s)://user:password@host:port/database, "
                "clickhouse(s)://… or chdb:///folder"
            )
        return cls(
            interface,
            parts.hostname,
            port,
            unquote(parts.username) if parts.username else None,
            unquote(parts.password) if parts.password else None,
            unquote(parts.path.strip("/")) or None,
        )


def open_store(dsn: str, *, read_only: bool = False, timeout_seconds: float = 60.0) -> Store:
    """Open the store that the DSN names; nothing is sent before the first statement.

    `read_only` forbids writing on top of what the user may do (ClickHouse's `readonly = 2`); leave
    it off for a user whom the server already holds to reading, who may not change that setting.

    Raises:
        InvalidDsnError: the DSN cannot be read.
    """
    return Store(Address.of(dsn), read_only=read_only, timeout_seconds=timeout_seconds)


class Store:
    """A thread-safe connection: each statement has a client to itself, made when none is idle.

    Raises from every method:
        StoreUnavailableError: whether the statement ran is unknown.
        StoreRefusedError: the engine said no, so it did not run.
    """

    def __init__(self, address: Address, *, read_only: bool, timeout_seconds: float) -> None:
        self._address = address
        self._read_only = read_only
        self._timeout_seconds = timeout_seconds
        self._clients = Clients(self._connect)
        self._guard = threading.Lock()
        self._helpers: ThreadPoolExecutor | None = None
        for name in _NOISY_LOGGERS:  # their warnings hold URLs with statements and parameters
            logging.getLogger(name).setLevel(logging.CRITICAL)

    def __repr__(self) -> str:
        """Say where, never as whom."""
        where = self._address.folder or f"{self._address.host}:{self._address.port}"
        return f"Store({self._address.interface}, {where}, database={self._address.database})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def query(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
    ) -> Rows:
        """Run a statement that returns rows; `{name:Type}` in it takes a parameter.

        Times come back aware, in UTC.
        """
        bound = _bound(parameters)
        with self._translated() as client:
            try:
                answer = client.query(
                    sql, parameters=bound, settings=self._settings(settings), tz_mode="aware"
                )
                return Rows(tuple(answer.column_names), answer.result_rows)
            except _UNREADABLE as error:  # what answered is no ClickHouse
                raise StoreUnavailableError(_unknown(type(error).__name__)) from None

    def command(
        self,
        sql: str,
        data: bytes | None = None,
        settings: Settings | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Run a statement that returns nothing, once: it is never sent again by itself.

        Whatever is answered all the same is no success: the engine's own exceptions may come behind
        a status of 200.

        With `data`, the statement reads `input('…')` and ends in `FORMAT …`.
        """
        bound = _bound(parameters)
        with self._translated() as client:
            if data is not None and self._address.folder is not None:
                with rows_file(sql, data) as statement:
                    client.command(statement, parameters=bound, settings=self._settings(settings))
                return
            said = client.command(
                sql, parameters=bound, data=data, settings=self._settings(settings)
            )
            if self._address.folder is None and not _is_done(said):
                raise StoreUnavailableError(_unknown("an answer where none belongs"))

    def together(self, *asks: Callable[[], Any]) -> list[Any]:
        """Ask several independent questions at once and return their answers in order.

        What no helper has begun when its answer is due is asked by the caller's own thread, so that
        an ask may itself ask several. When one fails, its error is raised; the others end unheard.
        """
        helpers = self._helping()
        begun = [helpers.submit(ask) for ask in asks[1:]]
        answers = [ask() for ask in asks[:1]]
        for ask, helped in zip(asks[1:], begun, strict=True):
            answers.append(ask() if helped.cancel() else helped.result())
        return answers

    def ping(self) -> None:
        """Raise unless the store answers."""
        self.query("SELECT 1")

    def close(self) -> None:
        """Close the clients; one in use is closed when its statement has ended."""
        with self._guard:
            helpers, self._helpers = self._helpers, None
        if helpers is not None:
            helpers.shutdown()
        self._clients.close()

    def _helping(self) -> ThreadPoolExecutor:
        with self._guard:
            if self._helpers is None:
                self._helpers = ThreadPoolExecutor(_HELPERS, thread_name_prefix="store")
            return self._helpers

    def _settings(self, settings: Settings | None) -> dict[str, Any]:
        return {**(settings or {}), **(_READ_ONLY if self._read_only else {})}

    @contextmanager
    def _translated(self) -> Iterator[Any]:
        try:
            with self._clients.lent() as client:
                yield client
        except StoreUnavailableError:
            raise
        except OperationalError as error:
            raise _translation(error) from None
        except DatabaseError as error:
            raise _translation(error) from None
        except (ProgrammingError, ClickHouseError) as error:
            raise StoreRefusedError(getattr(error, "code", None)) from None
        except OSError as error:
            raise StoreUnavailableError(_unknown(type(error).__name__)) from None

    def _connect(self) -> Any:
        address = self._address
        if address.folder is not None:
            return clickhouse_connect.get_client(
                interface="chdb",
                path=address.folder,
                database=address.database,
                tz_mode="aware",
                show_clickhouse_errors=False,
            )
        return clickhouse_connect.get_client(
            interface=address.interface,
            host=address.host,
            port=address.port or 0,
            username=address.user,
            password=address.password or "",
            database=address.database,
            autogenerate_session_id=False,
            query_retries=0,
            tz_mode="aware",
            show_clickhouse_errors=False,
            connect_timeout=min(10.0, self._timeout_seconds),
            send_receive_timeout=self._timeout_seconds,
            dedicated_pool=True,
        )


def _is_done(said: object) -> bool:
    """Tell a server's "done", which names the query and says no more, from anything else.

    That may be an exception that came after the status, or the page of something in between.
    """
    return said == "" or (isinstance(said, QuerySummary) and bool(said.query_id()))


def _translation(error: DatabaseError) -> StoreUnavailableError | StoreRefusedError:
    code: int | None = getattr(error, "code", None)
    if code is None:
        # a proxy's 502, a closed connection, half an answer: all without a code of the engine
        return StoreUnavailableError(_unknown(type(error).__name__))
    return StoreRefusedError(code, getattr(error, "name", None))


def _unknown(kind: str) -> str:
    return (
        f"the store did not answer in full ({kind}), so whether the statement ran is unknown; "
        "check that it is up and reachable, then try again"
    )


def _bound(parameters: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Make parameters safe to send: times to UTC with microseconds, zone-less ones refused."""
    return None if parameters is None else {name: _value(one) for name, one in parameters.items()}


def _value(value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a zone-less time means nothing to the store; give an aware one")
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    if isinstance(value, list | tuple):
        return type(value)(_value(item) for item in value)
    return value
