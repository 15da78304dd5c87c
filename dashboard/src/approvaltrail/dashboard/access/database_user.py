"""Looks at the dashboard's database user when it starts, and acts on what that user may do."""

from __future__ import annotations

from typing import Final

import structlog

from approvaltrail.dashboard.access.rights import may_write
from approvaltrail.dashboard.access.settings import AccessSettings, is_local
from approvaltrail.dashboard.errors import WritingUserRefusedError
from approvaltrail.store.connection import open_store
from approvaltrail.store.errors import StoreUnavailableError

_TIMEOUT_SECONDS: Final = 5.0
_IN_PROCESS: Final = "chdb:"
"""An engine within this process belongs to it: there are no users."""
_ADVICE: Final = (
    "give it one who may only read: a profile with readonly = 1, and GRANT SELECT on its database"
)


def check_database_user(dsn: str, access: AccessSettings, address: str) -> None:
    """Refuse a user who may write where others are served; warn where this machine alone is.

    A store that does not answer yet is no reason not to start: the pages will say so.

    Raises:
        WritingUserRefusedError: others are served, and nobody said that this is meant.
        InvalidDsnError: the DSN cannot be read.
    """
    if not _may_write(dsn):
        return
    serves_others = access.sign_in or not is_local(address)
    if serves_others and not access.dashboard_allow_writer:
        raise WritingUserRefusedError(
            f"the dashboard's database user may change the record; {_ADVICE} "
            "(or set APPROVALTRAIL_DASHBOARD_ALLOW_WRITER=true)"
        )
    structlog.get_logger("approvaltrail.dashboard").warning(
        "database_user_may_write", advice=f"the dashboard only reads; {_ADVICE}"
    )


def _may_write(dsn: str) -> bool:
    if dsn.startswith(_IN_PROCESS):
        return True
    try:
        with open_store(dsn, timeout_seconds=_TIMEOUT_SECONDS) as store:
            return may_write(store)
    except StoreUnavailableError:
        return False
