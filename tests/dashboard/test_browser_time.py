"""One clock: UTC in every zone of server and browser, the viewer's own beside it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.dashboard.browsing import settled, visiting
from tests.dashboard.edges import BOUNDS, HOURS, OFFSET_DAY, Edges

from approvaltrail.dashboard import formats

pytestmark = pytest.mark.timeout(120)
ZONES = ("America/New_York", "Pacific/Norfolk", "UTC")


def between(start: datetime, end: datetime) -> str:
    return f"range=custom&from={formats.iso(start)}&to={formats.iso(end)}"


def day_of(start: datetime) -> str:
    return between(start, start + timedelta(days=1))


def goto(page: Page, url: str) -> None:
    page.goto(url)
    settled(page)


@pytest.mark.parametrize("zone", ZONES)
def test_d_11_d_12_the_same_utc_text_in_every_zone(
    chromium: Browser, corner_dashboard: str, edges: Edges, zone: str
) -> None:
    """D-11, D-12: served in Tokyo, read anywhere: table, axis and columns are the stored UTC."""
    with visiting(chromium, corner_dashboard, timezone_id=zone) as (page, seen):
        goto(page, f"{corner_dashboard}/replays?{day_of(HOURS + timedelta(days=33))}")
        row = page.locator("table.at tbody tr")
        expect(row).to_contain_text("06:59:59.999")
        expect(row).to_contain_text("2026-03-08")
        time = row.locator("time").first
        assert time.get_attribute("datetime") == "2026-03-08T06:59:59.999Z"
        title = str(time.get_attribute("title"))
        local = {
            "America/New_York": "2026-03-08 01:59:59 EST",
            "Pacific/Norfolk": "2026-03-08 18:59:59 +12",
        }
        assert title.startswith("2026-03-08 06:59:59.999 UTC")
        assert local.get(zone, "") in title
        extent = page.locator(".at-extent").inner_text()
        assert "2026-03-08 00:00:00 → 2026-03-09 00:00:00 UTC · looked at " in extent
        assert ("where you are" in extent) is (zone in local)
        goto(page, f"{corner_dashboard}/?{day_of(HOURS)}")
        tips = page.locator(".at-tip").all_text_contents()
        ticks = page.locator(".at-ticks span").all_text_contents()
        assert ticks == ["03 Feb", *(f"{hour:02}:00" for hour in range(3, 24, 3)), "04 Feb"]
        assert page.locator(".at-axis-name").inner_text() == "time (UTC)"
        counted: dict[str, int] = {}
        for tip in tips:
            when, _, said = tip.partition(" UTC: ")
            events = 0 if said == "nothing" else int(said.split()[0])
            counted[when[:13]] = counted.get(when[:13], 0) + events
        assert counted == {f"2026-02-03 {hour:02}": hour + 1 for hour in range(24)}
        assert seen.errors == []


def test_d_13_the_bounds_in_widget_url_and_query_are_the_same_instants(
    chromium: Browser, corner_dashboard: str, edges: Edges
) -> None:
    """D-13: an event on the first bound is in, one on the last is out, whatever the zone."""
    with visiting(chromium, corner_dashboard, timezone_id="America/St_Johns") as (page, _):
        goto(page, f"{corner_dashboard}/events?{between(*BOUNDS)}")
        expect(page.get_by_label("From (UTC)")).to_have_value("2026-02-05T10:00:00Z")
        rows = page.locator("table.at tbody tr")
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text("10:00:00.000")
        page.get_by_label("To (UTC)").fill("2026-02-05T23:45:00.000001Z")
        page.get_by_label("To (UTC)").press("Enter")
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text("23:45:00.000")
        assert "to=2026-02-05T23%3A45%3A00.000001Z" in page.url


def test_d_14_fixed_offsets_are_utc_before_they_are_shown(
    chromium: Browser, corner_dashboard: str, edges: Edges
) -> None:
    """D-14: rows that came with three offsets are listed by instant, in UTC, without an error."""
    with visiting(chromium, corner_dashboard, timezone_id="Asia/Kathmandu") as (page, seen):
        errors: list[str] = []
        page.on("console", lambda said: said.type == "error" and errors.append(said.text))
        goto(page, f"{corner_dashboard}/events?{day_of(OFFSET_DAY)}")
        times = page.locator("table.at tbody tr time").all_inner_texts()
        assert times == ["12:02:00.000", "12:01:00.000", "12:00:00.000"]
        nonces = page.locator("table.at tbody tr a.at-mono").evaluate_all(
            "all => all.map(one => one.title)"
        )
        assert nonces == edges.offsets[::-1]
        assert seen.errors == []
        assert [one for one in errors if "404" not in one] == []
