"""What can go wrong between us and the store.

StoreError
├── StoreUnavailableError   nobody knows whether the statement ran: say it again
├── StoreRefusedError       the engine answered with an error code: the statement did not run
├── MigrationError          the tables are not what this version expects
└── InvalidDsnError         the DSN cannot be read

No message ever holds a row, a statement, a parameter, a URL or a password: the engine's own words
may quote rows, so its error code and name are all that is passed on.
"""

from __future__ import annotations

from typing import ClassVar, Final

_TEMPORARY: Final = frozenset(
    {
        3,  # UNEXPECTED_END_OF_FILE
        159,  # TIMEOUT_EXCEEDED
        164,  # READONLY, as a replica is while it has lost its keeper
        202,  # TOO_MANY_SIMULTANEOUS_QUERIES
        209,  # SOCKET_TIMEOUT
        210,  # NETWORK_ERROR
        216,  # QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING
        236,  # ABORTED
        241,  # MEMORY_LIMIT_EXCEEDED
        242,  # TABLE_IS_READ_ONLY
        243,  # NOT_ENOUGH_SPACE
        252,  # TOO_MANY_PARTS
        253,  # REPLICA_IS_ALREADY_EXIST
        319,  # UNKNOWN_STATUS_OF_INSERT
        373,  # SESSION_IS_LOCKED
        425,  # SYSTEM_ERROR
        439,  # CANNOT_SCHEDULE_TASK
        999,  # KEEPER_EXCEPTION
    }
)
"""Codes of ClickHouse (`src/Common/ErrorCodes.cpp`) that speak of the server, not of the rows."""


class StoreError(Exception):
    """Base of the store's errors."""

    retriable: ClassVar[bool] = False


class StoreUnavailableError(StoreError):
    """The store did not answer, or answered half: whether the statement ran is unknown.

    Every statement of ours may run twice, so saying it again is right.
    """

    retriable: ClassVar[bool] = True


class StoreRefusedError(StoreError):
    """The engine refused the statement with an error code, so nothing of it ran.

    An insert that spans several months may have stored some of them; to insert again is right.
    """

    def __init__(self, code: int | None, name: str | None = None) -> None:
        """Take ClickHouse's error code, and its name where that is known."""
        what = (
            "without a code" if code is None else f"with code {code}{f' ({name})' if name else ''}"
        )
        hint = "try again shortly" if code in _TEMPORARY else "its own log says more"
        super().__init__(f"the store refused a statement {what}; {hint}")
        self.code = code
        self.name = name

    @property
    def temporary(self) -> bool:
        """Whether the reason is the server's state rather than the statement or its rows."""
        return self.code is None or self.code in _TEMPORARY


class MigrationError(StoreError):
    """The tables in the store are not what this version expects."""


class InvalidDsnError(StoreError, ValueError):
    """The DSN cannot be read; the message never repeats it."""
