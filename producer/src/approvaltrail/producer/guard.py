"""Sees that the journal's file was deleted, replaced or made read-only under the process."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from approvaltrail.producer.errors import Cause, JournalUnavailableError

if TYPE_CHECKING:
    from approvaltrail.producer.directory import JournalPath


class FileGuard:
    """Compares what stands at the journal's path with what was opened there.

    An open file can be written after its name is gone, and nobody would ever find those events.
    So the writer looks before each transaction, and when it is idle. Each look costs two system
    calls, around which the interpreter's lock changes hands: a second look at each commit would
    cost those who wait more than the commit itself.
    """

    def __init__(self, path: JournalPath) -> None:
        """Remember the files as they are now; both must exist."""
        self._path = path
        self._watched = [
            (os.fspath(file), _identity(os.stat(file)))  # noqa: PTH116 - a few µs, on every commit
            for file in (path.file, path.wal)
        ]

    def check(self) -> None:
        """Raise JournalUnavailableError if an event could not be found again."""
        for file, identity in self._watched:
            try:
                found = os.stat(file)  # noqa: PTH116
            except (FileNotFoundError, NotADirectoryError):
                raise self._error(Cause.MISSING, "was deleted") from None
            except OSError as error:
                raise self._error(Cause.DISK_ERROR, f"gives {error.strerror}") from None
            if _identity(found) != identity:
                raise self._error(Cause.REPLACED, "was replaced by another file")
            # asked of the mode, not of the kernel: a server that runs as root may write anything
            if not found.st_mode & stat.S_IWUSR:
                raise JournalUnavailableError(
                    Cause.READ_ONLY,
                    f"the journal {file} was made read-only; nothing is recorded. Make it "
                    "writable for its owner again: recording resumes by itself",
                )

    def _error(self, cause: Cause, what: str) -> JournalUnavailableError:
        return JournalUnavailableError(
            cause,
            f"the journal {self._path.file} {what} while it was in use; nothing is recorded. Put "
            "the original back (recording resumes by itself), or restart the process to begin a "
            "new journal",
        )


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
