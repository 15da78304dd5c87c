"""The statements of a SQL ledger."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Delete,
    Insert,
    Select,
    String,
    Update,
    bindparam,
    cast,
    delete,
    insert,
    literal_column,
    select,
    update,
)

from approvaltrail.gate.ledger.protocol import Claim
from approvaltrail.gate.ledger.sql_tables import LEDGER, NONCES, VERSION, ExactText
from approvaltrail.schemas.encoding import microseconds

_COLUMNS: Final = ("nonce", "claim_id", "spent_at", "expires_at", "tool")


def _insert_claim() -> Insert:
    values = (
        bindparam("a_nonce", type_=ExactText()),
        cast(bindparam("a_claim_id", type_=String()), String(64)),
        cast(bindparam("a_spent_at"), BigInteger),
        cast(bindparam("an_expires_at"), BigInteger),
        cast(bindparam("a_tool", type_=String()), String(128)),
    )
    remembered = (
        select(*values)
        .select_from(LEDGER)
        .where(
            LEDGER.c.version == VERSION,
            LEDGER.c.created_at <= cast(bindparam("an_issued_at"), BigInteger),
            LEDGER.c.pruned_until < cast(bindparam("the_expires_at"), BigInteger),
        )
    )
    return insert(NONCES).from_select(_COLUMNS, remembered)


INSERT: Final = _insert_claim()
"""The claim. It inserts nothing where the ledger is younger than the token, or has forgotten it.

The ledger says so itself in this statement, so that tables made anew meanwhile are noticed."""

LOOK: Final[Select[Any]] = select(
    LEDGER.c.created_at, LEDGER.c.pruned_until, NONCES.c.claim_id, NONCES.c.spent_at
).select_from(LEDGER.outerjoin(NONCES, NONCES.c.nonce == bindparam("a_nonce", type_=ExactText())))


def claim_values(claim: Claim, now: datetime) -> dict[str, Any]:
    """Return the parameters of `INSERT`."""
    expires_at = microseconds(claim.expires_at)
    return {
        "a_nonce": claim.nonce,
        "a_claim_id": claim.claim_id,
        "a_spent_at": microseconds(now),
        "an_expires_at": expires_at,
        "a_tool": claim.tool,
        "an_issued_at": microseconds(claim.issued_at),
        "the_expires_at": expires_at,
    }


def database_time(dialect: str) -> Select[Any]:
    """Return the question for the database's own time, in microseconds."""
    if dialect == "postgresql":
        return select(
            cast(literal_column("extract(epoch from clock_timestamp()) * 1000000"), BigInteger)
        )
    return select(cast(literal_column("UNIX_TIMESTAMP(NOW(6)) * 1000000"), BigInteger))


def move_mark(until: int) -> Update:
    """Say that claims of tokens that expired so early may be gone."""
    return update(LEDGER).where(LEDGER.c.pruned_until < until).values(pruned_until=until)


def expired(until: int, count: int) -> Select[Any]:
    """Return some nonces of tokens that expired so early."""
    return select(NONCES.c.nonce).where(NONCES.c.expires_at <= until).limit(count)


def delete_expired(nonces: list[str], until: int) -> Delete:
    """Drop these nonces."""
    return delete(NONCES).where(NONCES.c.nonce.in_(nonces), NONCES.c.expires_at <= until)


def page_of_claims(start: int, end: int, after: str, count: int) -> Select[Any]:
    """Return the next claims in the order of their nonces, which deletions do not disturb."""
    return (
        select(NONCES)
        .where(NONCES.c.nonce > after, NONCES.c.spent_at >= start, NONCES.c.spent_at < end)
        .order_by(NONCES.c.nonce)
        .limit(count)
    )
