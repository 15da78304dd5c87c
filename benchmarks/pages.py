"""Looking: how long a person waits for a page, a filter and a trail, in a real browser.

`python -m benchmarks.pages --json [--events N] [--rounds R]`. Chromium at 1440 px looks at a served
dashboard over a store of N events. Every round is asked afresh: kept answers have expired, and the
fresh profile has no file of ours yet. A wait ends when the data is in the page, not its frame.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

from approvaltrail.local.child import Child
from approvaltrail.store.connection import open_store
from benchmarks.generate import generate
from benchmarks.harness import Figure, arguments, show
from benchmarks.stack import Stack, running_stack, wait_until

CHROMIUM: Final = Path("/usr/bin/chromium")
_KEPT_SECONDS: Final = 5.5
"""A little longer than the dashboard keeps an answer."""
_WHOLE: Final = ".stApp[data-test-script-state=notRunning]"
_PAGES: Final = {
    "overview": ".at-card-number",
    "replays": "table.at tbody tr",
    "refusals": ".at-column",
    "events": "table.at tbody tr",
    "ledger": ".at-balance",
    "pipeline": "table.at tbody tr",
}
"""Page → where its data is."""
_TOOLS: Final = ("tidb_execute", "tidb_delete_branch", "tidb_create_backup", "tidb_create_branch")
_ASKED: Final = re.compile(
    r'^approvaltrail_engine_requests_total\{kind="select",user="reader"\} (\S+)', re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Served:
    """A dashboard over the filled store."""

    url: str
    engine: str

    def queries(self) -> float:
        """Return how many queries the dashboard has sent so far."""
        found = _ASKED.search(httpx.get(f"{self.engine}/metrics").text)
        return float(found[1]) if found else 0.0


@contextlib.contextmanager
def served(stack: Stack, dsn: str) -> Iterator[Served]:
    """Serve the dashboard as its own process, as the user who may only read."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = stack.engine.address
    user = f"{quote(address.reader_user)}:{quote(address.reader_password)}"
    reader = f"http://{user}@{urlsplit(address.url).netloc}{urlsplit(dsn).path}"
    command = [sys.executable, "-m", "approvaltrail.dashboard", "--port", str(port)]
    log = stack.folder / "dashboard.log"
    child = Child(command, log=log, environment={"APPROVALTRAIL_DASHBOARD_DSN": reader})
    child.start()
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _answers(f"{url}/_stcore/health"), "the dashboard serves")
        yield Served(url, address.url)
    finally:
        child.stop()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.HTTPError:
        return False


@contextlib.contextmanager
def visiting(browser: Browser) -> Iterator[Page]:
    """Open a page in a profile that has never been here."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(120_000)
    try:
        yield page
    finally:
        context.close()


def seen_at(page: Page, condition: str) -> float:
    """Wait for a condition (JavaScript) frame by frame; return the page's clock in milliseconds."""
    look = f"() => ({condition}) ? done(performance.now()) : requestAnimationFrame(look)"
    # The pages' security policy forbids what Playwright's own waiting does: eval.
    return float(page.evaluate(f"() => new Promise(done => {{ const look = {look}; look(); }})"))


def loaded(page: Page, url: str, where: str) -> float:
    """Return the milliseconds from asking for a URL to its data."""
    page.goto(url, wait_until="commit")
    return seen_at(page, f"document.querySelector('{where}')")


def changed(page: Page, act: Callable[[], object], ready: str) -> float:
    """Return the milliseconds from an action to what a condition (JavaScript) waits for."""
    begun = time.perf_counter()
    act()
    seen_at(page, ready)
    return (time.perf_counter() - begun) * 1_000


def whole(page: Page) -> None:
    """Wait until nothing is drawn any more, and kept answers have expired."""
    page.locator(_WHOLE).wait_for()
    time.sleep(_KEPT_SECONDS)


def first_paints(browser: Browser, at: Served, rounds: int) -> Iterator[Figure]:
    """Yield how long a fresh profile and a returning one wait for the overview."""
    fresh, returning = [], []
    for _ in range(rounds):
        with visiting(browser) as page:
            fresh.append(loaded(page, at.url, _PAGES["overview"]))
            whole(page)
            returning.append(loaded(page, at.url, _PAGES["overview"]))
            whole(page)
    yield Figure(name="overview, first visit", value=statistics.median(fresh), unit="ms")
    yield Figure(name="overview, later visit", value=statistics.median(returning), unit="ms")


def every_page(page: Page, at: Served, rounds: int) -> Iterator[Figure]:
    """Yield the wait for each page from the menu, and the queries that it takes whole."""
    waits: dict[str, list[float]] = {name: [] for name in _PAGES}
    queries: dict[str, float] = {}
    page.goto(f"{at.url}/trail")
    whole(page)
    for _, (name, where) in itertools.product(range(rounds), _PAGES.items()):
        before = at.queries()
        link = page.get_by_test_id("stSidebarNav").get_by_role("link", name=name.capitalize())
        ready = f"document.querySelector('h1')?.innerText === '{name.capitalize()}' && "
        ready += f"document.querySelector('{where}')"
        waits[name].append(changed(page, link.click, ready))
        whole(page)
        queries[name] = at.queries() - before
    for name, seen in waits.items():
        yield Figure(name=f"{name}, from the menu", value=statistics.median(seen), unit="ms")
    for name, asked in queries.items():
        yield Figure(name=f"{name}, queries of a run", value=asked, unit="queries")


def filters(page: Page, at: Served, rounds: int) -> Iterator[Figure]:
    """Yield how long a changed filter of Events takes to change the rows."""
    page.goto(f"{at.url}/events")
    page.locator(_PAGES["events"]).first.wait_for()
    waits = []
    before = at.queries()
    for tool in itertools.islice(itertools.cycle(_TOOLS), rounds):
        whole(page)
        before = at.queries()
        box = page.get_by_label("Tool", exact=True)
        box.fill(tool)
        ready = f"document.querySelector('.at-chips')?.innerText.includes('{tool}') && "
        ready += f"document.querySelector('table.at tbody')?.innerText.includes('{tool}')"
        waits.append(changed(page, lambda box=box: box.press("Enter"), ready))
    page.locator(_WHOLE).wait_for()
    yield Figure(name="events, filter changed", value=statistics.median(waits), unit="ms")
    asked = at.queries() - before
    yield Figure(name="events, queries of a filter change", value=asked, unit="queries")


def trails(page: Page, at: Served, rounds: int) -> Iterator[Figure]:
    """Yield how long it takes from a row of Replays to the trail's timeline."""
    waits, wholes = [], []
    asked = 0.0
    for turn in range(rounds):
        page.goto(f"{at.url}/replays")
        page.locator(_PAGES["replays"]).first.wait_for()
        whole(page)
        link = page.locator(_PAGES["replays"]).nth(turn).get_by_role("link", name="Trail of")
        before, begun = at.queries(), time.perf_counter()
        waits.append(changed(page, link.click, "document.querySelector('.at-timeline')"))
        page.locator(_WHOLE).wait_for()
        wholes.append((time.perf_counter() - begun) * 1_000)
        asked = at.queries() - before
    yield Figure(name="trail, from a row of replays", value=statistics.median(waits), unit="ms")
    whole_ms = statistics.median(wholes)
    yield Figure(name="trail, with labels, neighbours and status", value=whole_ms, unit="ms")
    yield Figure(name="trail, queries of a run", value=asked, unit="queries")


def figures(events: int, rounds: int) -> Iterator[Figure]:
    """Fill a store, serve it, and look."""
    with running_stack(kafka=False) as stack:
        dsn = stack.fresh_database()
        with open_store(dsn, timeout_seconds=600) as store:
            yield Figure(name="stored events", value=generate(store, events), unit="events")
        with served(stack, dsn) as at, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            yield from first_paints(browser, at, rounds)
            with visiting(browser) as page:
                yield from every_page(page, at, rounds)
                yield from filters(page, at, rounds)
                yield from trails(page, at, rounds)
            browser.close()


def main() -> None:
    """Measure and print."""
    chosen = arguments(__doc__, events=10_000_000, rounds=5)
    show(figures(chosen.events, chosen.rounds), as_json=chosen.json)


if __name__ == "__main__":
    main()
