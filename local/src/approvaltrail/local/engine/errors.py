"""What can go wrong with the embedded engine.

EngineError
├── EngineFolderInUseError   another engine holds the folder
├── EnginePortTakenError     somebody else listens on the port
├── EngineStartError         the process ended, or did not answer in time
└── QueryError               one request was refused or failed, with ClickHouse's code
"""

from __future__ import annotations

from typing import ClassVar

from approvaltrail.local.engine.codes import HTTP_STATUS, NAMES


class EngineError(RuntimeError):
    """Base of all errors of the embedded engine."""

    retriable: ClassVar[bool] = False


class EngineFolderInUseError(EngineError):
    """Another engine holds the folder."""


class EnginePortTakenError(EngineError):
    """The port is not free."""


class EngineStartError(EngineError):
    """The engine did not become ready; its log says why."""

    retriable: ClassVar[bool] = True


class QueryError(EngineError):
    """A request that failed; `text` is in ClickHouse's form and goes to the client alone.

    The text may quote rows, so it never goes into a log: log `code`.
    """

    def __init__(self, code: int, text: str, *, status: int | None = None) -> None:
        super().__init__(f"query failed with code {code}")
        self.code = code
        self.text = text
        self.status = status or HTTP_STATUS.get(code, 500)

    @classmethod
    def of(cls, code: int, message: str, *, status: int | None = None) -> QueryError:
        """Return an error of our own in the words' form that clients parse."""
        return cls(code, f"Code: {code}. DB::Exception: {message} ({NAMES[code]})", status=status)
