"""What can go wrong while recording.

ProducerError
├── NotStartedError          used before `start()` or after `close()`    *
├── JournalUnavailableError  the journal takes no events now             *
├── EventTooLargeError       one event is longer than the contract allows *
├── JournalDirectoryError    the journals' directory cannot be used
├── JournalVersionError      a newer version wrote this journal
├── JournalInUseError        another process holds this journal
└── RelayError               the broker did not take what was sent

Those with a star are RecorderUnavailableErrors too: the gate knows them by that name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from approvaltrail.schemas.errors import RecorderUnavailableError


class Cause(StrEnum):
    """Why a journal takes no events: a stable code for health, heartbeats and metrics."""

    FULL = "journal_full"
    """The journal has reached its own limit; it empties as the broker acknowledges."""
    UNVERIFIED_SHARE = "unverified_share_used"
    """Only unverified refusals are turned away, so that they cannot lock the gate."""
    DISK_FULL = "disk_full"
    READ_ONLY = "journal_read_only"
    MISSING = "journal_missing"
    REPLACED = "journal_replaced"
    DAMAGED = "journal_damaged"
    DISK_ERROR = "disk_error"
    STALLED = "disk_stalled"
    """The disk has not answered one write for longer than the stall limit."""
    OVERLOADED = "queue_full"
    BUSY = "journal_busy"
    CLOSED = "journal_closed"
    INTERNAL = "internal_error"


class ProducerError(Exception):
    """Base of the producer's errors."""

    retriable: ClassVar[bool] = False


class NotStartedError(ProducerError, RecorderUnavailableError):
    """The producer was used before it was started, or after it was closed."""

    retriable: ClassVar[bool] = False


class JournalUnavailableError(ProducerError, RecorderUnavailableError):
    """The journal takes no events now; the message names the file and the next step."""

    retriable: ClassVar[bool] = True

    def __init__(self, cause: Cause, message: str) -> None:
        """Take the stable cause and a message for people."""
        super().__init__(message)
        self.cause = cause

    def again(self) -> JournalUnavailableError:
        """Return a fresh instance for another caller: a raised error belongs to one of them."""
        return JournalUnavailableError(self.cause, str(self))


class EventTooLargeError(ProducerError, RecorderUnavailableError):
    """The encoded event is longer than the contract allows; nothing was recorded."""

    retriable: ClassVar[bool] = False


class JournalDirectoryError(ProducerError):
    """The directory for journals is not usable or not durable."""


class JournalVersionError(ProducerError):
    """A newer version of this product wrote the journal."""


class JournalInUseError(ProducerError):
    """Another process holds this journal's lock."""

    retriable: ClassVar[bool] = True


class RelayError(ProducerError):
    """The broker did not take what was sent; it is sent again."""

    retriable: ClassVar[bool] = True
