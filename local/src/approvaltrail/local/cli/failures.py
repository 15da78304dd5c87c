"""Which exit code belongs to which error."""

from __future__ import annotations

from approvaltrail.consumers.errors import ConsumerError
from approvaltrail.dashboard.errors import ExportError, TooManyRowsError
from approvaltrail.gate.errors import GateError, LedgerMisconfiguredError
from approvaltrail.local.broker import BrokerError
from approvaltrail.local.child import ChildError
from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.engine import EngineError
from approvaltrail.local.errors import (
    AlreadyRunningError,
    DataFolderError,
    NothingFoundError,
    NotRunningError,
    PartStartError,
    StillReportsError,
    StuckError,
)
from approvaltrail.producer.errors import JournalDirectoryError, ProducerError
from approvaltrail.schemas.errors import RegistryError, SettingsError
from approvaltrail.store.errors import InvalidDsnError, StoreError

_CODES: dict[type[Exception], ExitCode] = {
    SettingsError: ExitCode.SETTINGS,
    DataFolderError: ExitCode.SETTINGS,
    AlreadyRunningError: ExitCode.ALREADY_RUNNING,
    NotRunningError: ExitCode.UNAVAILABLE,
    NothingFoundError: ExitCode.NOTHING_FOUND,
    StillReportsError: ExitCode.FAILED_CHECK,
    PartStartError: ExitCode.UNAVAILABLE,
    StuckError: ExitCode.UNAVAILABLE,
    BrokerError: ExitCode.UNAVAILABLE,
    EngineError: ExitCode.UNAVAILABLE,
    ChildError: ExitCode.UNAVAILABLE,
    ConsumerError: ExitCode.UNAVAILABLE,
    ProducerError: ExitCode.UNAVAILABLE,
    JournalDirectoryError: ExitCode.SETTINGS,
    GateError: ExitCode.UNAVAILABLE,
    LedgerMisconfiguredError: ExitCode.SETTINGS,
    ExportError: ExitCode.UNAVAILABLE,
    TooManyRowsError: ExitCode.USAGE,
    RegistryError: ExitCode.UNAVAILABLE,
    StoreError: ExitCode.UNAVAILABLE,
    InvalidDsnError: ExitCode.SETTINGS,
}


def code_of(error: Exception) -> ExitCode:
    """Return the code of the nearest known class of the error, `INTERNAL` for an unknown one."""
    for kind in type(error).__mro__:
        if kind in _CODES:
            return _CODES[kind]
    return ExitCode.INTERNAL
