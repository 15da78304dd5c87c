"""What can go wrong with the contract itself.

ContractError
├── UndecodableError      bytes that are not an event of a known version
└── RecorderUnavailableError
SettingsError             a setting that has no usable value
"""

from __future__ import annotations

from typing import ClassVar


class ContractError(Exception):
    """Base of the contract's errors."""

    retriable: ClassVar[bool] = False


class UndecodableError(ContractError):
    """These bytes are not an event of a known version; `cause` is a stable code."""

    def __init__(self, cause: str, message: str) -> None:
        """Take the stable cause code and a message without any of the bytes."""
        super().__init__(message)
        self.cause = cause


class RecorderUnavailableError(ContractError):
    """The recorder cannot take events now; nothing may be issued or accepted meanwhile."""

    retriable: ClassVar[bool] = True


class SettingsError(Exception):
    """One or more settings have no usable value; the message names each and what it takes."""

    retriable: ClassVar[bool] = False
