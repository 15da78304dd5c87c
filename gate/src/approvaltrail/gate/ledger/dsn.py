"""What a `CONTROL_DSN` names, read without any database package."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from approvaltrail.gate.errors import LedgerMisconfiguredError

EXTRA: Final = "approvaltrail-gate[sql]"


class Family(StrEnum):
    """The kinds of database that a nonce can be spent in."""

    SQLITE = "sqlite"
    MYSQL = "mysql"
    """MariaDB, MySQL, and TiDB, which speaks MySQL's protocol."""
    POSTGRESQL = "postgresql"


_SCHEMES: Final = MappingProxyType(
    {
        "sqlite": Family.SQLITE,
        "mysql": Family.MYSQL,
        "mariadb": Family.MYSQL,
        "tidb": Family.MYSQL,
        "mysql+pymysql": Family.MYSQL,
        "mariadb+pymysql": Family.MYSQL,
        "postgresql": Family.POSTGRESQL,
        "postgres": Family.POSTGRESQL,
        "postgresql+pg8000": Family.POSTGRESQL,
    }
)
DRIVERS: Final = MappingProxyType({Family.MYSQL: "pymysql", Family.POSTGRESQL: "pg8000"})
PARAMETERS: Final = frozenset(
    {"sslmode", "sslrootcert", "sslcert", "sslkey"}
    | {"ssl_ca", "ssl_verify_cert", "ssl_verify_identity"}
)
"""TLS alone. Whatever else decides how a claim commits is the ledger's own to set: a DSN that says
`autocommit` or `init_command` is refused by that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlDsn:
    """A DSN that names a ledger. Its representation says the kind of database alone."""

    text: str
    family: Family

    def __repr__(self) -> str:
        return f"ControlDsn({self.family.value})"

    @property
    def path(self) -> Path:
        """The file, of a SQLite DSN."""
        return Path(unquote(self.text.partition(":///")[2].partition("?")[0]))

    @property
    def parameters(self) -> dict[str, str]:
        """The query parameters."""
        return dict(parse_qsl(urlsplit(self.text).query, keep_blank_values=True))


def read_dsn(text: str) -> ControlDsn:
    """Return what the DSN names.

    Raises:
        LedgerMisconfiguredError: it names no ledger; the message repeats none of its values.
    """
    scheme, separator, _ = text.partition("://")
    family = _SCHEMES.get(scheme) if separator else None
    if family is None:
        raise LedgerMisconfiguredError(
            "CONTROL_DSN names a kind of database that this release has no ledger for; it takes "
            "mysql://, mariadb://, tidb://, postgresql:// and sqlite:///PATH, or give the gate a "
            "ledger of your own"
        )
    dsn = ControlDsn(text=text, family=family)
    problem = _sqlite_problem(dsn) if family is Family.SQLITE else _server_problem(dsn)
    if problem is not None:
        raise LedgerMisconfiguredError(f"CONTROL_DSN {problem}")
    return dsn


def _sqlite_problem(dsn: ControlDsn) -> str | None:
    if not dsn.text.startswith("sqlite:///") or dsn.path == Path():
        return "names no file; write sqlite:///PATH, with four slashes for an absolute path"
    return None


def _server_problem(dsn: ControlDsn) -> str | None:
    try:
        parts = urlsplit(dsn.text)
        complete = bool(parts.hostname and parts.username and parts.path.strip("/"))
        _ = parts.port
    except ValueError:
        complete = False
    if not complete:
        return (
            "lacks a host, user or database, or its port is no number; write "
            f"{dsn.family.value}://USER:PASSWORD@HOST:PORT/DATABASE, special characters "
            "percent-encoded"
        )
    foreign = sorted(dsn.parameters.keys() - PARAMETERS)
    if foreign:
        return (
            f"sets {', '.join(foreign)}, which the ledger sets itself, as single use depends on "
            f"it; leave it out (it takes {', '.join(sorted(PARAMETERS))})"
        )
    missing = [
        name
        for name in ("sqlalchemy", DRIVERS[dsn.family])
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        return f"needs {' and '.join(missing)}, not installed here; install {EXTRA}"
    return None
