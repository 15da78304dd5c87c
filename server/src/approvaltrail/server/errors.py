"""What can go wrong in the server.

ServerError
├── StartRefusedError         the settings allow no safe start; names every reason
├── TemplateError             the template file cannot be used; names every problem
├── ToolProblemError          a call cannot be served as asked; carries the answer
├── PlatformError             the cluster API
│   ├── PlatformRefusedError      it answered: this key may not
│   ├── PlatformRejectedError     it answered: this request is wrong, nothing was done
│   ├── PlatformSilentError       no usable answer to a question; nothing was changed
│   └── PlatformOutcomeError      no usable answer to a change: it may have been made
└── DatabaseError             a cluster's SQL endpoint
    ├── DatabaseRefusedError      it answered with an error
    ├── DatabaseSilentError       it did not answer; the statement did not run
    └── DatabaseOutcomeError      it fell silent after the statement was sent
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from approvaltrail.server.problems import Problem


class ServerError(Exception):
    """Base of the server's errors; no message carries a credential or a caller's payload."""

    retriable: ClassVar[bool] = False


class StartRefusedError(ServerError):
    """The settings allow no safe start; `problems` holds every reason, not only the first."""

    def __init__(self, problems: Iterable[str]) -> None:
        """Take one sentence a reason."""
        self.problems = tuple(problems)
        lines = "\n".join(f"- {problem}" for problem in self.problems)
        super().__init__(f"the server refuses to start:\n{lines}")


class TemplateError(ServerError):
    """The template file cannot be used; `problems` holds every reason."""

    def __init__(self, problems: Iterable[str]) -> None:
        """Take one sentence a problem."""
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class ToolProblemError(ServerError):
    """A call cannot be served as it was asked; `problem` is the answer."""

    def __init__(self, problem: Problem) -> None:
        """Take what the caller is to see."""
        super().__init__(problem.code)
        self.problem = problem


class PlatformError(ServerError):
    """The cluster API did not do what it was asked; `status` is its HTTP status, if any."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        """Take a sentence and the status."""
        super().__init__(message)
        self.status = status


class PlatformRefusedError(PlatformError):
    """The API answered that this key may not; repeating the call changes nothing."""


class PlatformRejectedError(PlatformError):
    """The API answered that the request cannot be served; nothing was done."""


class PlatformSilentError(PlatformError):
    """The API gave no usable answer to a question; nothing was changed."""

    retriable: ClassVar[bool] = True


class PlatformOutcomeError(PlatformError):
    """The API gave no usable answer to a change, which may have been made or not."""


class DatabaseError(ServerError):
    """A SQL endpoint did not do what it was asked; `code` is the server's error number, if any."""

    def __init__(self, message: str, *, code: int | None = None) -> None:
        """Take a sentence and the number."""
        super().__init__(message)
        self.code = code


class DatabaseRefusedError(DatabaseError):
    """The server answered with an error: retrying the same cannot help."""


class DatabaseSilentError(DatabaseError):
    """The server did not answer, as in a cold start; the statement did not run."""

    retriable: ClassVar[bool] = True


class DatabaseOutcomeError(DatabaseError):
    """The connection was lost after the statement was sent: it may have run."""
