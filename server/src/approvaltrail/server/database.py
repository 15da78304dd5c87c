"""The seam to a cluster's SQL endpoint, over the MySQL protocol.

`PinnedDatabase` holds one SQL user of one cluster and cannot reach anything else. `MintedDatabase`
has none: for each statement it makes a SQL user on the cluster through the caller's own key, and
removes it again, so that the platform decides what the key may touch.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pymysql
import pymysql.cursors
import structlog

from approvaltrail.server.errors import (
    DatabaseError,
    DatabaseOutcomeError,
    DatabaseRefusedError,
    DatabaseSilentError,
    PlatformError,
)
from approvaltrail.server.platform.protocol import Platform
from approvaltrail.server.platform.values import Cluster

MAXIMUM_ROWS: Final = 500
CONNECT_SECONDS: Final = 10
STATEMENT_SECONDS: Final = 60
_CLIENT_ERRORS: Final = range(2_000, 3_000)
"""Numbers that the driver gives where the server did not answer."""
_PASSING: Final = frozenset({1040, 1053, 1203, 1226})
"""Answers that say "not now": too many connections, shutting down, over a limit."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """How one SQL endpoint is entered."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a statement returned, within the bound."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    changed_rows: int
    truncated: bool

    def structured(self) -> dict[str, Any]:
        """Return the rows for a structured result."""
        return {
            "columns": list(self.columns),
            "rows": [[_plain(value) for value in row] for row in self.rows],
            "changedRows": self.changed_rows,
            "truncated": self.truncated,
        }


class Database(Protocol):
    """Runs statements on a cluster."""

    async def run(
        self,
        cluster: Cluster,
        database: str,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        changes: bool,
    ) -> Rows:
        """Run one statement; without `changes` in a transaction that can only read.

        Raises:
            DatabaseRefusedError: the server answered with an error.
            DatabaseSilentError: it did not answer; nothing ran.
            DatabaseOutcomeError: it fell silent after a change was sent.
        """
        ...


class PinnedDatabase:
    """One SQL user of one cluster, whatever cluster is asked for: the login decides."""

    def __init__(self, login: Login) -> None:
        self._login = login

    async def run(  # noqa: D102 - Database says it
        self,
        cluster: Cluster,  # noqa: ARG002 - the login decides
        database: str,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        changes: bool,
    ) -> Rows:
        return await asyncio.to_thread(
            run_statement, self._login, database, statement, parameters, changes=changes
        )

    async def probe(self) -> None:
        """Connect and ask nothing of any table; errors as `run`."""
        await asyncio.to_thread(run_statement, self._login, None, "SELECT 1", None, changes=False)


class MintedDatabase:
    """A SQL user for each statement, made and removed under one platform key."""

    def __init__(self, platform: Platform, *, tls: bool = True) -> None:
        self._platform = platform
        self._tls = tls

    async def run(  # noqa: D102 - Database says it
        self,
        cluster: Cluster,
        database: str,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        changes: bool,
    ) -> Rows:
        if cluster.host is None or cluster.port is None:
            raise DatabaseRefusedError("The cluster has no public SQL endpoint.")
        password = secrets.token_urlsafe(24)
        role = "role_readwrite" if changes else "role_readonly"
        made = await self._platform.create_sql_user(
            cluster.cluster_id,
            user_name=f"at_{secrets.token_hex(6)}",
            role=role,
            password=password,
        )
        login = Login(
            host=cluster.host,
            port=cluster.port,
            user=made.user_name,
            password=password,
            tls=self._tls,
        )
        try:
            return await asyncio.to_thread(
                run_statement, login, database, statement, parameters, changes=changes
            )
        finally:
            await self._remove(cluster.cluster_id, made.user_name)

    async def _remove(self, cluster_id: str, user_name: str) -> None:
        try:
            await self._platform.delete_sql_user(cluster_id, user_name)
        except PlatformError as error:
            _log.warning(
                "minted_user_not_removed",
                cluster_id=cluster_id,
                user_name=user_name,
                error=type(error).__name__,
                next_step="remove the SQL user by hand",
            )


def run_statement(
    login: Login,
    database: str | None,
    statement: str,
    parameters: Mapping[str, Any] | None,
    *,
    changes: bool,
) -> Rows:
    """Connect, run one statement, disconnect; blocks. Errors as `Database.run`."""
    try:
        connection = _connected(login, database)
    except pymysql.MySQLError as error:
        raise _error(error, sent=False) from None
    except OSError as error:
        raise DatabaseSilentError(
            f"The SQL endpoint did not answer ({type(error).__name__})."
        ) from None
    try:
        return _run(connection, statement, parameters, changes=changes)
    except pymysql.MySQLError as error:
        raise _error(error, sent=changes) from None
    finally:
        _close(connection)


def _connected(login: Login, database: str | None) -> pymysql.Connection[Any]:
    return pymysql.connect(
        host=login.host,
        port=login.port,
        user=login.user,
        password=login.password,
        database=database,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=STATEMENT_SECONDS,
        write_timeout=STATEMENT_SECONDS,
        autocommit=True,
        charset="utf8mb4",
        ssl=ssl.create_default_context() if login.tls else None,
        cursorclass=pymysql.cursors.Cursor,
    )


def _run(
    connection: pymysql.Connection[Any],
    statement: str,
    parameters: Mapping[str, Any] | None,
    *,
    changes: bool,
) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(f"SET SESSION sql_select_limit = {MAXIMUM_ROWS + 1}")
        if not changes:
            cursor.execute("START TRANSACTION READ ONLY")
        changed = cursor.execute(statement, None if parameters is None else dict(parameters))
        columns: Sequence[Any] = cursor.description or ()
        rows = cursor.fetchall() if columns else ()
        return Rows(
            columns=tuple(str(column[0]) for column in columns),
            rows=tuple(tuple(row) for row in rows[:MAXIMUM_ROWS]),
            changed_rows=0 if columns else int(changed or 0),
            truncated=len(rows) > MAXIMUM_ROWS,
        )


def _close(connection: pymysql.Connection[Any]) -> None:
    """Say goodbye where that is still possible."""
    with contextlib.suppress(pymysql.MySQLError, OSError):
        connection.close()


def _error(error: pymysql.MySQLError, *, sent: bool) -> DatabaseError:
    """Map the driver's error by its number; its text may quote data and is not passed on."""
    number = error.args[0] if error.args and isinstance(error.args[0], int) else None
    if number is None or number in _CLIENT_ERRORS or number in _PASSING or number == 0:
        if sent and number not in _PASSING:
            return DatabaseOutcomeError("The SQL endpoint fell silent.", code=number)
        return DatabaseSilentError("The SQL endpoint did not answer.", code=number)
    return DatabaseRefusedError(f"The SQL endpoint answered with error {number}.", code=number)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)
