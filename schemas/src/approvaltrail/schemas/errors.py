"""What can go wrong with the contract itself.

ContractError
├── UndecodableError      bytes that are not an event of a known version
├── RecorderUnavailableError
└── RegistryError
    ├── RegistryUnavailableError   the schema registry does not answer as it should
    └── RegistryRefusedError       it does not take our schema
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


class RegistryError(ContractError):
    """The schema registry gave no usable answer; the message says what to look at."""

    retriable: ClassVar[bool] = True


class RegistryUnavailableError(RegistryError):
    """The registry does not answer, or answers as none does."""


class RegistryRefusedError(RegistryError):
    """The registry lacks our schema or refuses it: whoever runs it has to mend that."""


class SettingsError(Exception):
    """One or more settings have no usable value; the message names each and what it takes."""

    retriable: ClassVar[bool] = False
