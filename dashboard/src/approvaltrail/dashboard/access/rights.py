"""Whether the dashboard's database user could change the record.

Every statement of ours forbids writing (`readonly = 2`) whoever sends it. A user who may only read
holds even where our own code is broken, so a dashboard that serves others is refused one who may
write; on this machine alone it is told in the log. ClickHouse, "Permissions for queries".
"""

from __future__ import annotations

import re
from typing import Final

from approvaltrail.store.connection import Store
from approvaltrail.store.errors import StoreRefusedError

_READING: Final = re.compile(
    r"^GRANT (?:(?:SELECT|SHOW[A-Z ]*|dictGet|CHECK)(?:\([^)]*\))?(?:, )?)+ ON ", re.IGNORECASE
)


def may_write(store: Store) -> bool:
    """Say whether the user behind a connection (opened without `read_only`) could write.

    A server that does not answer the question holds its user short, which counts as reading only.

    Raises:
        StoreUnavailableError: it does not answer at all.
    """
    try:
        if int(store.query("SELECT getSetting('readonly')").scalar()) > 0:
            return False
        grants = [str(row[0]) for row in store.query("SHOW GRANTS").rows]
    except StoreRefusedError:
        return False
    return not all(_READING.match(grant) for grant in grants)
