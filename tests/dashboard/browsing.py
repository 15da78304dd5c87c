"""A real browser before a really served dashboard."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, Request

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK: dict[str, Any] = {"viewport": {"width": 1440, "height": 1000}, "timezone_id": "UTC"}
PATIENCE_SECONDS = 40.0
OWN_SCHEMES = ("data:", "blob:")


@contextmanager
def served(reader_dsn: str, log: Path, **settings: str) -> Iterator[str]:
    """Serve the dashboard as its own process; gives its URL."""
    process, url = started(reader_dsn, log, **settings)
    try:
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


def started(reader_dsn: str, log: Path, **settings: str) -> tuple[subprocess.Popen[bytes], str]:
    """Start the dashboard as its own process and return it with its URL once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"APPROVALTRAIL_DASHBOARD_DSN": reader_dsn} | settings
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "approvaltrail.dashboard", "--port", str(port)],
            env=environment,
            stdout=output,
            stderr=output,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url, process, log)
    except BaseException:
        process.kill()
        process.wait(timeout=20)
        raise
    return process, url


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):
                return
        except OSError:
            assert process.poll() is None, log.read_text("utf-8", "replace")
            assert time.monotonic() < deadline, f"no dashboard within {PATIENCE_SECONDS:g} s"
            time.sleep(0.1)


@dataclass
class Seen:
    """What happened besides what is on the page."""

    base: str
    outside: list[str] = field(default_factory=list)
    """Requests to anywhere but the dashboard."""
    dialogs: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Exceptions in the page's scripts."""

    def request(self, request: Request) -> None:
        """Note a request."""
        own = (self.base, self.base.replace("http", "ws", 1), *OWN_SCHEMES)
        if not request.url.startswith(own):
            self.outside.append(request.url)

    def watch_page(self, page: Page) -> None:
        """Watch everything that one page does."""
        page.on("request", self.request)
        self._watch_page(page)

    def watch(self, context: BrowserContext) -> None:
        """Watch everything that any page of a context does."""
        context.on("request", self.request)
        context.on("page", self._watch_page)

    def _watch_page(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))


@contextmanager
def visiting(chromium: Browser, base: str, **options: Any) -> Iterator[tuple[Page, Seen]]:
    """Open a fresh profile in the running browser; gives a page and what happens around it."""
    context = chromium.new_context(**DESK | options)
    try:
        seen = Seen(base)
        seen.watch(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_SECONDS * 1000)
        yield page, seen
    finally:
        context.close()


@contextmanager
def in_profile(profile: BrowserContext, base: str) -> Iterator[tuple[Page, Seen]]:
    """Open a page in a profile that others use too; gives it and what happens around it."""
    page = profile.new_page()
    try:
        seen = Seen(base)
        seen.watch_page(page)
        page.set_default_timeout(PATIENCE_SECONDS * 1000)
        yield page, seen
    finally:
        page.close()


def settled(page: Page) -> None:
    """Wait until the page is drawn whole: its status line is there and nothing runs any more."""
    page.locator("[role=status].at-status").wait_for()
    page.locator(".stApp[data-test-script-state=notRunning]").wait_for()


def query(page: Page) -> dict[str, str]:
    """Return the parameters of the page's URL."""
    return {name: found[0] for name, found in parse_qs(urlsplit(page.url).query).items()}
