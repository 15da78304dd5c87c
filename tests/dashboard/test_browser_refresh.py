"""Pages that look again by themselves: nothing jumps, nothing is lost, and it can be held still."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.dashboard.browsing import in_profile, served, settled
from tests.dashboard.conftest import PATIENT, Make
from tests.support.engine_faults import Close, FaultProxy
from tests.support.stored import store_events, store_story
from tests.support.story import Story

from approvaltrail.local.engine import EngineProcess
from approvaltrail.store.connection import Store

pytestmark = pytest.mark.timeout(120)


@dataclass
class Live:
    """A dashboard that looks every two seconds, its store, and a way to make that fail."""

    url: str
    store: Store
    faults: FaultProxy
    story: Story = field(default_factory=lambda: Story(datetime.now(UTC) - timedelta(minutes=9)))
    stored: int = 0

    def replayed(self) -> str:
        """Store a token that comes back, as the newest of all; return its nonce."""
        call = self.story.call()
        nonce = self.story.after(seconds=1).issue(call)
        self.story.after(seconds=1).accept(call, nonce, outcome=None)
        self.story.after(seconds=1).replay(call, nonce)
        store_events(self.store, self.story.events[self.stored :])
        self.stored = len(self.story.events)
        return nonce


@pytest.fixture(scope="module")
def live(
    new_store: Make, engine: EngineProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Live]:
    """Serve an empty store."""
    store, reader = new_store()
    quick = PATIENT | {"APPROVALTRAIL_REFRESH_SECONDS": "2", "APPROVALTRAIL_STALE_SECONDS": "60"}
    log = tmp_path_factory.mktemp("live") / "log"
    with (
        FaultProxy(engine.address.url) as faults,
        served(faults.through(reader), log, **quick) as url,
    ):
        yield Live(url, store, faults)


@pytest.fixture
def page(profile: BrowserContext, live: Live) -> Iterator[Page]:
    """Open a page; nothing may fail in its scripts."""
    with in_profile(profile, live.url) as (opened, seen):
        yield opened
        assert seen.errors == []


def card(page: Page, word: str) -> Page:
    return page.locator(f".at-card.at-edge-{word} .at-card-number")  # type: ignore[return-value]


def test_what_is_stored_meanwhile_appears_by_itself(page: Page, live: Live) -> None:
    """Overview begins with nothing recorded, and says so; then the first events appear."""
    page.goto(live.url)
    expect(page.locator("[role=status].at-status")).to_contain_text("Nothing recorded yet")
    live.replayed()
    store_story(live.store, live.story.events, datetime.now(UTC) - timedelta(minutes=8))
    expect(card(page, "issued")).to_have_text("1")
    expect(page.locator("[role=status].at-status")).to_contain_text("1 producer")
    expect(page.locator(".at-states")).to_contain_text("Pipeline stale: what is stored lies")


def test_d_01_d_02_a_row_stays_the_row_while_others_arrive(page: Page, live: Live) -> None:
    """D-01, D-02: a row's link is its own nonce's, whatever arrives above it."""
    first = live.replayed()
    page.goto(f"{live.url}/replays?range=1h")
    settled(page)
    newest = page.locator("table.at tbody tr").first
    link = newest.get_by_role("link", name=f"Trail of nonce {first}")
    expect(link).to_be_visible()
    newer = live.replayed()
    appeared = page.get_by_role("link", name=f"Trail of nonce {newer}")
    deadline = time.monotonic() + 20
    while not appeared.count():
        assert time.monotonic() < deadline
        page.reload()
        settled(page)
    page.get_by_role("link", name=f"Trail of nonce {first}").click()
    expect(page.locator(".at-heading")).to_contain_text(first)


def test_nothing_jumps_and_focus_stays_when_a_page_looks_again(page: Page, live: Live) -> None:
    """Scrolled down, with a link in focus: three refreshes with new data move neither."""
    page.set_viewport_size({"width": 1000, "height": 420})
    page.goto(live.url)
    settled(page)
    link = page.get_by_role("link", name="→ Ledger").last
    link.scroll_into_view_if_needed()
    link.focus()
    top = "document.querySelector('.stMain').scrollTop"
    where = page.evaluate(top)
    assert where > 0
    before = int(card(page, "issued").inner_text())
    for more in range(1, 4):
        live.replayed()
        expect(card(page, "issued")).to_have_text(str(before + more))
        assert page.evaluate(top) == where
        expect(page.get_by_role("link", name="→ Ledger").last).to_be_focused()


def test_a_page_that_is_paused_looks_no_more(page: Page, live: Live) -> None:
    """Pausing is in the URL, holds the page, and going on shows what came meanwhile."""
    page.goto(f"{live.url}/?pause=true")
    settled(page)
    before = int(card(page, "issued").inner_text())
    asked = len(live.faults.seen)
    live.replayed()
    page.wait_for_timeout(3_000)  # longer than a refresh: that nothing happens is the point
    assert len(live.faults.seen) == asked
    assert card(page, "issued").inner_text() == str(before)
    page.get_by_text("Pause refresh").click()
    expect(card(page, "issued")).to_have_text(str(before + 1))
    assert "pause" not in page.url


def test_pages_of_evidence_do_not_look_again_by_themselves(page: Page, live: Live) -> None:
    """D-02: Replays, Trail, Refusals and Events stand still until somebody asks."""
    nonce = live.replayed()
    for path in ("replays", f"trail?nonce={nonce}", "refusals", "events"):
        page.goto(f"{live.url}/{path}")
        settled(page)
        assert page.get_by_text("Pause refresh").count() == 0
    asked = len(live.faults.seen)
    page.wait_for_timeout(2_500)  # longer than a refresh: that nothing happens is the point
    assert len(live.faults.seen) == asked


def test_a_store_that_goes_away_is_said_and_comes_back(page: Page, live: Live) -> None:
    """An open page says that the store is unreachable, and shows the numbers again once it is."""
    page.goto(live.url)
    settled(page)
    status = page.locator("[role=status].at-status").first
    expect(status).to_contain_text(re.compile("Complete|Not yet"))
    live.faults.inject(Close(), times=10_000)
    expect(status).to_contain_text("Store unreachable")
    expect(page.locator(".at-card-number")).to_have_count(0)
    live.faults.clear()
    expect(card(page, "issued")).to_be_visible()
