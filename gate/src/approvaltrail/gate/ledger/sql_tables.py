"""The tables of a SQL ledger, and the look whether they are as they must be.

They are made by `approvaltrail ledger migrate`, never when a nonce is claimed: a table that a claim
made for itself would be a new ledger, in which everything is unspent.
"""

from __future__ import annotations

from typing import Any, Final

from approvaltrail.gate.errors import LedgerMisconfiguredError
from approvaltrail.gate.ledger.dsn import EXTRA
from approvaltrail.schemas.bounds import NONCE, TOOL

try:
    from sqlalchemy import (
        BigInteger,
        Column,
        Connection,
        Dialect,
        Index,
        MetaData,
        PrimaryKeyConstraint,
        SmallInteger,
        String,
        Table,
        inspect,
        select,
        text,
    )
    from sqlalchemy.dialects import mysql
    from sqlalchemy.types import TypeDecorator, TypeEngine
except ImportError as error:
    raise ImportError(f"a SQL ledger needs SQLAlchemy; install {EXTRA}") from error

VERSION: Final = 1
MIGRATE: Final = "approvaltrail ledger migrate"
KEY: Final = "mcp_confirm_nonce_pkey"
"""The primary key's name where keys have names; MySQL calls every primary key PRIMARY."""
_CLAIM_ID: Final = 64


class ExactText(TypeDecorator[str]):
    """Text that is compared byte by byte.

    MySQL's `_bin` collations still pad with spaces, so the bytes themselves are kept there.
    """

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type in this database."""
        if dialect.name in {"mysql", "mariadb"}:
            return dialect.type_descriptor(mysql.VARBINARY(NONCE))
        return dialect.type_descriptor(String(NONCE, collation="C"))

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """Return what the driver is given."""
        binary = dialect.name in {"mysql", "mariadb"}
        return value.encode() if binary and value is not None else value

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002 - the base's
        """Return the text."""
        return bytes(value).decode() if isinstance(value, bytes | bytearray) else value


_OPTIONS: Final[dict[str, Any]] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_engine": "InnoDB",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}
metadata = MetaData()

NONCES: Final = Table(
    "mcp_confirm_nonce",
    metadata,
    Column("nonce", ExactText(), nullable=False),
    Column("claim_id", String(_CLAIM_ID), nullable=False),
    Column("spent_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("tool", String(TOOL), nullable=False),
    PrimaryKeyConstraint("nonce", name=KEY),
    Index("mcp_confirm_nonce_by_expiry", "expires_at"),
    **_OPTIONS,
)
"""The spent nonces. Times are whole microseconds since the Unix epoch, UTC."""

LEDGER: Final = Table(
    "mcp_confirm_ledger",
    metadata,
    Column("one", SmallInteger, primary_key=True, autoincrement=False),
    Column("version", SmallInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("pruned_until", BigInteger, nullable=False),
    **_OPTIONS,
)
"""One row about the ledger itself; every claim reads it in the statement that inserts."""


def check_tables(connection: Connection) -> None:
    """Return if the tables are there and as they must be.

    Raises:
        LedgerMisconfiguredError: naming what is not, and the command that mends it.
    """
    names = set(inspect(connection).get_table_names())
    missing = sorted({NONCES.name, LEDGER.name} - names)
    if missing:
        raise no_tables(" and ".join(missing))
    key = inspect(connection).get_pk_constraint(NONCES.name)
    if key["constrained_columns"] != ["nonce"]:
        raise LedgerMisconfiguredError(
            f"{NONCES.name} has no primary key on nonce alone, so that a nonce could be spent "
            f"twice; drop the table and run `{MIGRATE}`"
        )
    if not check_version(connection):
        raise no_tables(f"the row of {LEDGER.name}")
    if connection.dialect.name in {"mysql", "mariadb"}:
        _check_engine(connection)


def _check_engine(connection: Connection) -> None:
    found = connection.execute(
        text(
            "SELECT engine FROM information_schema.tables "
            "WHERE table_schema = DATABASE() AND table_name = :name"
        ),
        {"name": NONCES.name},
    ).scalar()
    if str(found).lower() != "innodb":
        raise LedgerMisconfiguredError(
            f"{NONCES.name} has the engine {found}, which has no transactions; run "
            f"`ALTER TABLE {NONCES.name} ENGINE = InnoDB`"
        )


def no_tables(what: str) -> LedgerMisconfiguredError:
    """Return the error for a control database that was not prepared."""
    return LedgerMisconfiguredError(
        f"the control database lacks {what}; run `{MIGRATE}` with a user who may create tables"
    )


def check_version(connection: Connection) -> bool:
    """Say whether the ledger's row is there, in a version that this release reads."""
    found = connection.execute(select(LEDGER.c.version)).scalar()
    if found not in {None, VERSION}:
        raise LedgerMisconfiguredError(
            f"the ledger's tables have version {found}, this release reads {VERSION}; use the "
            "release that made them"
        )
    return found is not None
