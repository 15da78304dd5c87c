"""What can go wrong with everything on one machine.

LocalError
├── AlreadyRunningError   another `up` holds the data folder
├── DataFolderError       the data folder cannot be used
├── PartStartError        a part did not become ready
├── StuckError            all parts run, and what was waited for does not come
├── NotRunningError       an address was asked for and nothing names one
├── NothingFoundError     nothing is known of what a command was asked about
└── StillReportsError     a producer that is to be retired is alive
"""

from __future__ import annotations

from typing import ClassVar


class LocalError(Exception):
    """Base of the errors of the supervisor and the command line."""

    retriable: ClassVar[bool] = False


class AlreadyRunningError(LocalError):
    """Another `up` runs on this data folder; the message names its process id and address."""


class DataFolderError(LocalError):
    """The data folder cannot be made, read or written."""


class PartStartError(LocalError):
    """A supervised part did not become ready in time; its log says why."""

    retriable: ClassVar[bool] = True


class StuckError(LocalError):
    """What was waited for did not come, although all parts run."""


class NotRunningError(LocalError):
    """No address is known: no flag, no variable, and no running `up` on the data folder."""

    retriable: ClassVar[bool] = True


class NothingFoundError(LocalError):
    """Nothing is known of a nonce or producer that was named; the message says what to try."""


class StillReportsError(LocalError):
    """Retiring is for producers that will not come back, and this one still reports."""
