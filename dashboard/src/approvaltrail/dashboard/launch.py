"""Starts Streamlit as this product needs it: loopback, quiet, nothing asked of other hosts."""

from __future__ import annotations

import secrets
from contextlib import suppress
from importlib.resources import as_file, files
from typing import Any, Final

import streamlit as st
from starlette.middleware import Middleware

from approvaltrail.dashboard import palette, text
from approvaltrail.dashboard.access.binding import LOOPBACK, check_address
from approvaltrail.dashboard.access.guard import Guard
from approvaltrail.dashboard.access.headers import SecurityHeaders, content_policy, front_page
from approvaltrail.dashboard.access.identity import SECRETS, SESSION_KEY
from approvaltrail.dashboard.access.provider import Provider
from approvaltrail.dashboard.access.session import Sessions
from approvaltrail.dashboard.access.settings import AccessSettings
from approvaltrail.dashboard.access.sign_in import SignIn
from approvaltrail.dashboard.assets import Assets
from approvaltrail.store.answers import TenantScope

_COLOURS: Final = [
    palette.BLUE,
    palette.GREEN,
    palette.ORANGE,
    palette.VERMILION,
    palette.SKY_BLUE,
    palette.PURPLE,
    palette.GREY,
]
_KEY_BYTES: Final = 32

OPTIONS: Final[dict[str, Any]] = {
    "browser.gatherUsageStats": False,
    "client.showErrorDetails": "none",
    "client.disableDataExport": True,  # its CSV leaves spreadsheet formulas as they are
    "client.toolbarMode": "minimal",
    "runner.magicEnabled": False,
    "server.headless": True,
    "server.enableAgentApi": False,
    "server.fileWatcherType": "none",
    "theme.light.primaryColor": palette.BLUE,
    "theme.light.chartCategoricalColors": _COLOURS,
    "theme.dark.primaryColor": palette.SKY_BLUE,
    "theme.dark.chartCategoricalColors": _COLOURS,
}


def serve(
    port: int,
    address: str = LOOPBACK,
    *,
    access: AccessSettings | None = None,
    scope: TenantScope | None = None,
    allow_open: bool = False,
) -> None:
    """Serve the pages until a signal ends the process. Main thread only.

    Raises:
        AddressRefusedError: the address is not this machine's alone, and there is no sign-in.
    """
    access = access or AccessSettings()
    check_address(address, access, allow_open=allow_open)
    with as_file(files("approvaltrail.dashboard") / "app.py") as script:
        app = build(str(script), access, scope or TenantScope.everything())
        # Uvicorn ends in order at Ctrl-C, and then raises it for whoever started it.
        with suppress(KeyboardInterrupt):
            app.run(config=options(port, address, access))


def build(script: str, access: AccessSettings, scope: TenantScope) -> st.App:
    """Put Streamlit behind the guard, and everything behind the security headers."""
    given = access.dashboard_session_secret
    key = given.get_secret_value() if given else secrets.token_urlsafe(_KEY_BYTES)
    sign_in = None
    if access.sign_in:
        sign_in = SignIn(
            settings=access,
            scope=scope,
            sessions=Sessions(key, access),
            provider=Provider(access),
        )
    headers = Middleware(
        SecurityHeaders,
        base_path=access.base_path,
        policy=content_policy(front_page(), text.behaviour_source()),
        https=access.cookies_secure,
    )
    assets = Middleware(Assets, base_path=access.base_path)
    guard = Middleware(Guard, base_path=access.base_path, sign_in=sign_in)
    return st.App(
        script,
        secrets={SECRETS: {SESSION_KEY: key}},
        routes=sign_in.routes() if sign_in else [],
        middleware=[headers, guard, assets],
    )


def options(port: int, address: str, access: AccessSettings) -> dict[str, Any]:
    """Return Streamlit's configuration for where it listens and what browsers call it."""
    return OPTIONS | {
        "server.address": address,
        "server.port": port,
        "server.baseUrlPath": access.base_path.strip("/"),
        "server.allowedHosts": access.hosts,
        # Without a name to print, Streamlit asks an outside host for this machine's public address.
        "browser.serverAddress": access.public_host,
    }
