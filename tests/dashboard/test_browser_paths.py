"""The ways through the pages, in a real browser: rows, links, history, filters, zoom."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.dashboard.browsing import Seen, query, settled, visiting
from tests.dashboard.conftest import Told

from approvaltrail.schemas.events import EventType

pytestmark = pytest.mark.timeout(120)
ROWS = "table.at tbody tr"


def test_d_01_d_03_one_click_leads_from_any_reuse_to_its_trail(
    opened: tuple[Page, Seen], dashboard: str, told: Told
) -> None:
    """D-01, D-03: the trail that opens is that of the row that was clicked; back leads back."""
    page, seen = opened
    page.goto(f"{dashboard}/replays?range=7d")
    rows = page.locator(ROWS)
    expect(rows).to_have_count(len(told.reuses))
    for index in (0, len(told.reuses) - 1):
        wanted = str(told.reuses[index].nonce)
        rows.nth(index).get_by_role("link", name=f"Trail of nonce {wanted}").click()
        expect(page.locator(".at-timeline")).to_contain_text("reuse 1 of")
        expect(page.locator(".at-heading")).to_contain_text(wanted)
        assert query(page) == {"nonce": wanted, "range": "7d"}
        page.go_back()
        expect(rows).to_have_count(len(told.reuses))
    assert seen.errors == []


def test_d_04_a_filtered_row_opens_its_own_trail(
    opened: tuple[Page, Seen], dashboard: str, told: Told
) -> None:
    """D-04: with a tenant chosen, the first row is that tenant's and so is what it opens."""
    page, _ = opened
    page.goto(f"{dashboard}/replays?range=7d")
    settled(page)
    page.get_by_label("Tenant").click()
    page.get_by_role("option", name="beta").click()
    expected = [one for one in told.reuses if one.tenant == "beta"]
    rows = page.locator(ROWS)
    expect(rows).to_have_count(len(expected))
    assert query(page)["tenant"] == "beta"
    rows.first.get_by_role("link", name="Trail of").click()
    expect(page.locator(".at-heading")).to_contain_text(str(expected[0].nonce))


def test_a_link_changes_the_page_in_place_and_history_leads_back_and_forth(
    opened: tuple[Page, Seen], dashboard: str, told: Told
) -> None:
    """No page is loaded anew on the way from the overview to a trail, back, forth, and reloaded."""
    page, seen = opened
    page.goto(dashboard)
    settled(page)
    page.evaluate("window.loadedOnce = true")
    page.locator(".at-states").get_by_role("link", name="→ Replays").click()
    expect(page.locator(ROWS)).to_have_count(len(told.reuses))
    replays = page.url
    assert query(page)["range"] == "custom"
    page.locator(ROWS).last.get_by_role("link", name="Trail of").click()
    expect(page.locator(".at-timeline")).to_be_visible()
    trail = page.url
    assert page.evaluate("window.loadedOnce")
    page.go_back()
    expect(page.locator(ROWS)).to_have_count(len(told.reuses))
    assert page.url == replays
    page.go_forward()
    expect(page.locator(".at-timeline")).to_be_visible()
    assert page.url == trail
    page.reload()
    expect(page.locator(".at-timeline")).to_be_visible()
    expect(page.locator(".at-heading")).to_contain_text(str(told.reuses[-1].nonce))
    assert page.url == trail
    assert seen.errors == []


def test_a_pasted_nonce_opens_its_trail(
    opened: tuple[Page, Seen], dashboard: str, told: Told
) -> None:
    """`?nonce=` works on the front page and keeps the range; the box does the same by hand."""
    page, _ = opened
    first, last = str(told.reuses[0].nonce), str(told.reuses[-1].nonce)
    page.goto(f"{dashboard}/?nonce={first}&range=7d")
    expect(page.locator(".at-heading")).to_contain_text(first)
    page.wait_for_url(re.compile("/trail.*range=7d"))
    page.get_by_label("Find nonce").fill(last)
    page.get_by_label("Find nonce").press("Enter")
    expect(page.locator(".at-heading")).to_contain_text(last)
    page.wait_for_url(re.compile(f"nonce={re.escape(last)}"))
    assert query(page) == {"range": "7d", "nonce": last}


def test_d_10_a_shared_link_shows_the_same_in_a_fresh_profile(
    opened: tuple[Page, Seen], dashboard: str, chromium: Browser
) -> None:
    """D-10: range, tenant and filters are in the link, the times absolute, and nothing else."""
    page, _ = opened
    page.goto(f"{dashboard}/events?range=7d&tenant=acme&type=refused&tool=tidb_delete_cluster")
    settled(page)
    said = page.locator(".at-lead").first.inner_text()
    page.get_by_role("button", name="Share").click()
    link = page.get_by_text(re.compile(rf"^{re.escape(dashboard)}/events\?range=custom&from="))
    shared = link.first.inner_text()
    with visiting(chromium, dashboard, timezone_id="Asia/Kolkata") as (other, _):
        other.goto(shared)
        settled(other)
        assert other.locator(".at-lead").first.inner_text() == said
        assert set(query(other)) == {"range", "from", "to", "tenant", "type", "tool"}
        expect(other.locator(".at-chips")).to_contain_text("tidb_delete_cluster")


def test_each_filter_in_force_is_a_chip_that_takes_it_away(
    opened: tuple[Page, Seen], dashboard: str, told: Told
) -> None:
    """Filters come from the URL, are seen above the rows, and one click undoes each."""
    page, seen = opened
    page.goto(f"{dashboard}/events?range=7d&trust=claimed&reason=bad_signature")
    forged = page.locator(".at-lead strong").first
    expect(forged).to_have_text("12 events")
    page.get_by_role("link", name="Remove the filter nonce: claimed").click()
    expect(page.locator(".at-chip")).to_have_count(1)
    assert query(page) == {"range": "7d", "reason": "bad_signature"}
    page.locator(".at-chip").click()
    expect(forged).to_have_text(f"{len(told.story.events):,} events")
    assert seen.errors == []


def test_the_range_is_zoomed_by_a_click_and_by_a_drag(
    opened: tuple[Page, Seen], dashboard: str
) -> None:
    """Columns of the chart write their span into the URL, and back undoes it."""
    page, seen = opened
    page.goto(f"{dashboard}/?range=6h")
    settled(page)
    columns = page.locator("a.at-column")
    first, last = columns.nth(2), columns.nth(9)
    start, end = (one.bounding_box() for one in (first, last))
    assert start is not None
    assert end is not None
    page.mouse.move(start["x"] + 2, start["y"] + 50)
    page.mouse.down()
    page.mouse.move(end["x"] - 5, end["y"] + 60, steps=3)
    page.mouse.move(end["x"] + 2, end["y"] + 60)
    page.mouse.up()
    expect(page.get_by_label("From (UTC)")).to_be_visible()
    zoomed = query(page)
    assert zoomed["range"] == "custom"
    expect(page.get_by_label("From (UTC)")).to_have_value(zoomed["from"])
    settled(page)
    columns.first.click()
    expect(page.get_by_label("To (UTC)")).not_to_have_value(zoomed["to"])
    assert query(page)["from"] == zoomed["from"]
    page.go_back()
    expect(page.get_by_label("To (UTC)")).to_have_value(zoomed["to"])
    page.go_back()
    expect(page.get_by_label("To (UTC)")).to_have_count(0)
    assert query(page) == {"range": "6h"}
    assert seen.errors == []


def test_the_menu_keeps_range_and_tenant(opened: tuple[Page, Seen], dashboard: str) -> None:
    """What was chosen above holds on the next page too."""
    page, _ = opened
    page.goto(f"{dashboard}/events?range=7d&tenant=beta&tool=tidb_execute")
    settled(page)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Refusals").click()
    expect(page.get_by_role("heading", name="Refusals", level=1)).to_be_visible()
    settled(page)
    assert query(page) == {"range": "7d", "tenant": "beta"}


def test_numbers_lead_to_exactly_their_rows(
    opened: tuple[Page, Seen], dashboard: str, told: Told
) -> None:
    """The count on a card, in a list and in the ledger's sum is the count of the rows behind it."""
    page, _ = opened
    page.goto(f"{dashboard}/?range=7d")
    settled(page)
    for card in ("Issued", "Accepted", "Refused"):
        link = page.locator("a.at-card", has_text=card)
        number = link.locator(".at-card-number").inner_text()
        link.click()
        expect(page.locator(".at-lead strong").first).to_have_text(re.compile(rf"^{number} "))
        page.go_back()
        settled(page)
    review = page.locator(".at-bar-row", has_text="Needs review")
    number = review.locator(".at-figures").inner_text()
    review.click()
    expect(page.locator(ROWS)).to_have_count(int(number))
    issued = {one.nonce for one in told.story.events if one.event_type is EventType.ISSUED}
    page.goto(f"{dashboard}/ledger?range=7d")
    expect(page.locator(".at-lead")).to_contain_text(f"{len(issued)} distinct nonces issued")
    unspent = page.locator(".at-lead").get_by_role("link", name="expired unspent")
    number = unspent.inner_text().split()[-3]
    unspent.click()
    expect(
        page.locator("table.at", has_text="Nonces expired unspent").locator("tbody tr")
    ).to_have_count(int(number))
