"""The lock of a journal, and the hint that stands in the lock's file.

The lock is flock(2) on a file beside the journal, never on the journal itself: opening and closing
that would drop SQLite's own locks. The file's text is a hint of how far the journal had come; it
tells after damage which numbers existed, and is always behind the journal, never ahead of it.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from approvaltrail.producer.directory import create_private
from approvaltrail.producer.errors import JournalInUseError

if TYPE_CHECKING:
    from pathlib import Path

_HINT_BYTES: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """How far a journal had come when the hint was written."""

    last_sequence: int = 0
    relayed_sequence: int = 0


class JournalLock:
    """Held as long as its descriptor is open in this process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, path: Path) -> Self:
        """Take the lock without waiting.

        Raises:
            JournalInUseError: another process holds it.
        """
        create_private(path)
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise JournalInUseError(
                f"another process holds {path}: stop it first, or let it drain its journal"
            ) from error
        if not _still_there(path, descriptor):
            os.close(descriptor)
            raise JournalInUseError(f"another process has just removed {path}: try again")
        return cls(path, descriptor)

    def hint(self) -> Hint:
        """Read the hint; where there is none, nothing is known."""
        return Hint() if self._descriptor is None else _read_hint(self._descriptor)

    @staticmethod
    def hint_of(path: Path) -> Hint:
        """Read the hint of a lock that another process holds."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _read_hint(descriptor)
        finally:
            os.close(descriptor)

    def write_hint(self, hint: Hint) -> None:
        """Write the hint; it survives the process, and losing it loses no event."""
        if self._descriptor is None:
            return
        text = json.dumps({"last": hint.last_sequence, "relayed": hint.relayed_sequence})
        try:
            os.pwrite(self._descriptor, text.ljust(_HINT_BYTES).encode(), 0)
        except OSError:
            return  # a full disk: the old hint stays true

    def release(self) -> None:
        """Give the lock up. In a forked child this frees nothing: the parent's stays held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _still_there(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def _read_hint(descriptor: int) -> Hint:
    try:
        values = json.loads(os.pread(descriptor, _HINT_BYTES, 0))
        return Hint(last_sequence=int(values["last"]), relayed_sequence=int(values["relayed"]))
    except (ValueError, KeyError, TypeError, OSError):
        return Hint()
