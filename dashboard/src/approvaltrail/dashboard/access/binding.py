"""Which addresses the dashboard may listen on.

Without sign-in whoever reaches the port reads the trail, so that is this machine alone, inside a
container too: what a container publishes is not for it to know. Whoever has put something in front
that asks for sign-in says so.
"""

from __future__ import annotations

from typing import Final

from approvaltrail.dashboard.access.settings import AccessSettings, is_local
from approvaltrail.dashboard.errors import AddressRefusedError

LOOPBACK: Final = "127.0.0.1"


def check_address(address: str, settings: AccessSettings, *, allow_open: bool = False) -> None:
    """Refuse an address that would show the pages to anybody.

    Raises:
        AddressRefusedError: beyond this machine, without sign-in, and nobody said so.
    """
    if is_local(address) or settings.sign_in:
        return
    if allow_open or settings.dashboard_allow_open:
        return
    raise AddressRefusedError(
        f"the dashboard has no sign-in and would show its pages to all who reach {address}: "
        f"listen on {LOOPBACK}; or set APPROVALTRAIL_OIDC_ISSUER and its companions; or, where "
        "something in front asks for sign-in (or a container publishes the port to 127.0.0.1 "
        "alone), say so with APPROVALTRAIL_DASHBOARD_ALLOW_OPEN=true or --allow-open"
    )
