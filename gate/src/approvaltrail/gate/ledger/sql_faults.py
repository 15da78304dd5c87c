"""What a database's error means for a claim: read from its code, never from its class.

Drivers raise one class for a duplicate key, a missing value and a broken reference alike. Codes:
MySQL's and MariaDB's server error reference, TiDB's error codes, PostgreSQL's appendix A.
"""

from __future__ import annotations

import re
from enum import StrEnum
from ssl import SSLCertVerificationError
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from approvaltrail.gate.errors import (
    LedgerBusyError,
    LedgerError,
    LedgerFullError,
    LedgerMisconfiguredError,
    LedgerReadOnlyError,
    LedgerTimeoutError,
    LedgerUnavailableError,
    LedgerUnreachableError,
)
from approvaltrail.gate.ledger.sql_tables import KEY, MIGRATE, NONCES


class Fault(StrEnum):
    """What went wrong, as far as it decides what to do next."""

    DUPLICATE = "duplicate"
    """Our own key: the nonce is spent."""
    BUSY = "busy"
    """Others held it; nothing was done, and it may be asked again."""
    TIMEOUT = "timeout"
    """The server ended the statement for its length; nothing was done."""
    READ_ONLY = "read_only"
    FULL = "full"
    TABLES = "tables"
    RIGHTS = "rights"
    CERTIFICATE = "certificate"
    LOST = "lost"
    """No connection, or one that broke: whatever was sent may have been done."""
    OTHER = "other"
    """Anything else that the server reported; what was sent may have been done."""


UNKNOWN: Final = frozenset({Fault.LOST, Fault.OTHER})
"""After these nobody knows whether the claim was committed."""

_MYSQL: Final = MappingProxyType(
    dict.fromkeys((1205, 1213, 1040, 1203, 1226, 3572, 8002, 8022, 9007), Fault.BUSY)
    | dict.fromkeys((1969, 3024, 1317), Fault.TIMEOUT)
    | dict.fromkeys((1290, 1792, 1836, 1223, 3100), Fault.READ_ONLY)
    | dict.fromkeys((1021, 1114, 3, 1026, 28), Fault.FULL)
    | dict.fromkeys((1146, 1054), Fault.TABLES)
    | dict.fromkeys((1044, 1045, 1049, 1142, 1143, 1698), Fault.RIGHTS)
    | dict.fromkeys((2002, 2003, 2006, 2013, 1053, 1927, 1158, 1159, 1160, 1161), Fault.LOST)
)
_DUPLICATE_ENTRY: Final = 1062
_OUR_KEY: Final = re.compile(rf"\b(?:{NONCES.name}\.)?PRIMARY\W*$")
"""How a duplicate's message ends, in whatever language; the key's name is not translated."""

_POSTGRESQL: Final = MappingProxyType(
    dict.fromkeys(("40001", "40P01", "55P03", "53300"), Fault.BUSY)
    | {"57014": Fault.TIMEOUT, "25006": Fault.READ_ONLY, "53100": Fault.FULL}
    | dict.fromkeys(("42P01", "42703", "3F000"), Fault.TABLES)
    | dict.fromkeys(("42501", "28000", "28P01", "3D000"), Fault.RIGHTS)
    | dict.fromkeys(("57P01", "57P02", "57P03", "25P03"), Fault.LOST)
)
_UNIQUE_VIOLATION: Final = "23505"
_LONGEST_CHAIN: Final = 8


def fault_of(error: Exception) -> Fault:
    """Return what the error means."""
    if isinstance(error, PoolTimeoutError):
        return Fault.BUSY
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return Fault.LOST
    reported = _reported(error)
    if isinstance(reported, dict):
        return _postgresql_fault(reported)
    if isinstance(reported, int):
        return _mysql_fault(reported, str(_driver_error(error).args[-1]))
    return Fault.LOST


def was_reported(error: BaseException) -> bool:
    """Say whether the server itself reported the error, so that its connection is still sound."""
    if not isinstance(error, Exception) or _reported(error) is None:
        return False
    return fault_of(error) is not Fault.LOST


def _driver_error(error: Exception) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _reported(error: Exception) -> int | dict[Any, Any] | None:
    """Return what the server said: PyMySQL's code, or pg8000's fields by their letters."""
    cause = _driver_error(error)
    first = cause.args[0] if cause.args and not isinstance(cause, OSError) else None
    return first if isinstance(first, int | dict) and first else None


def _mysql_fault(code: int, message: str) -> Fault:
    if code == _DUPLICATE_ENTRY:
        return Fault.DUPLICATE if _OUR_KEY.search(message) else Fault.OTHER
    return _MYSQL.get(code, Fault.OTHER)


def _postgresql_fault(fields: dict[Any, Any]) -> Fault:
    state = str(fields.get("C", ""))
    if state == _UNIQUE_VIOLATION:
        return Fault.DUPLICATE if fields.get("n") == KEY else Fault.OTHER
    return _POSTGRESQL.get(state, Fault.LOST if state.startswith("08") else Fault.OTHER)


def code_of(error: Exception) -> str:
    """Return the error's code, or its class where it has none.

    Never its text, which may hold data or the DSN.
    """
    reported = _reported(error)
    if isinstance(reported, dict):
        return f"SQLSTATE {reported.get('C', 'unknown')}"
    if isinstance(reported, int):
        return f"error {reported}"
    return type(_driver_error(error)).__name__


_RIGHTS: Final = (
    "refuses this user; check user, password and database of CONTROL_DSN, and that the user may "
    "select, insert, update and delete in the ledger's tables"
)
_MEANINGS: Final = MappingProxyType(
    {
        Fault.BUSY: (LedgerBusyError, "was held by others for too long; retry shortly"),
        Fault.TIMEOUT: (LedgerTimeoutError, "did not answer in time; retry shortly"),
        Fault.READ_ONLY: (
            LedgerReadOnlyError,
            "takes no writes; name the primary in CONTROL_DSN, or switch it back to writing",
        ),
        Fault.FULL: (LedgerFullError, "has no space left; free some"),
        Fault.TABLES: (
            LedgerMisconfiguredError,
            f"lacks the ledger's tables, or has others; run `{MIGRATE}`",
        ),
        Fault.RIGHTS: (LedgerMisconfiguredError, _RIGHTS),
        Fault.CERTIFICATE: (
            LedgerMisconfiguredError,
            "shows a certificate that does not verify; check sslrootcert and the host's name",
        ),
        Fault.LOST: (LedgerUnreachableError, "cannot be reached; check it and the network"),
    }
)


def meaning(error: Exception) -> LedgerError:
    """Map a foreign error to ours: one that says what to do, and repeats nothing of it."""
    if isinstance(error, LedgerError):
        return error
    fallback = (LedgerUnavailableError, "failed; see its own log for the cause")
    fault = fault_of(error)
    if _caused_by(error, SSLCertVerificationError):
        fault = Fault.CERTIFICATE
    elif _caused_by(error, TimeoutError):
        fault = Fault.TIMEOUT
    kind, text = _MEANINGS.get(fault, fallback)
    return kind(f"the control database {text} ({code_of(error)})")


def _caused_by(error: Exception, kind: type[BaseException]) -> bool:
    """Say whether such an error lies behind this one; drivers wrap those of the network."""
    found: BaseException | None = _driver_error(error)
    for _ in range(_LONGEST_CHAIN):
        if found is None or isinstance(found, kind):
            break
        found = found.__cause__ or found.__context__
    return isinstance(found, kind)
