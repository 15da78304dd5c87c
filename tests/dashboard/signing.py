"""A dashboard that asks for sign-in, and visitors who sign in at the provider beside it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import Page
from tests.dashboard.browsing import _wait_for
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider

BASE_PATH = "/audit"


@contextmanager
def served_with_sign_in(
    reader_dsn: str, provider: OidcProvider, log: Path, **settings: str
) -> Iterator[str]:
    """Serve the dashboard below a base path; gives its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}{BASE_PATH}"
    environment = {
        "APPROVALTRAIL_DASHBOARD_DSN": reader_dsn,
        "APPROVALTRAIL_DASHBOARD_URL": url,
        "APPROVALTRAIL_OIDC_ISSUER": provider.issuer,
        "APPROVALTRAIL_OIDC_CLIENT_ID": CLIENT_ID,
        "APPROVALTRAIL_OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "APPROVALTRAIL_OIDC_TENANT_CLAIM": "tenant",
        "APPROVALTRAIL_OIDC_ALL_TENANTS_VALUE": "every tenant",
        "APPROVALTRAIL_SILENT_AFTER_SECONDS": "86400",
        "APPROVALTRAIL_STALE_SECONDS": "86400",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "approvaltrail.dashboard", "--port", str(port)],
            env=os.environ | environment | settings,
            stdout=output,
            stderr=output,
        )
        try:
            _wait_for(url, process, log)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=20)


def signs_in(page: Page, person: str) -> None:
    """Choose who one is on the provider's page."""
    page.get_by_role("heading", name="Who are you?").wait_for()
    page.get_by_role("link", name=person, exact=True).click()


def visit(client: httpx.Client, url: str, person: str) -> httpx.Response:
    """Sign in without a browser; gives the answer to the callback."""
    page = client.get(url, headers={"accept": "text/html"})
    begun = client.get(str(httpx.URL(url).join(page.headers["location"])))
    asked = httpx.URL(begun.headers["location"])
    back = client.get(asked.copy_merge_params({"person": person}))
    return client.get(back.headers["location"])
