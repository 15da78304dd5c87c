"""What is seen: nothing from elsewhere, on a telephone, by keyboard, by a screen reader."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from tests.dashboard.accessibility import axe_source, serious
from tests.dashboard.browsing import Seen, settled, visiting
from tests.dashboard.conftest import Told
from tests.dashboard.hostile import hostile_texts
from tests.support.story import Story

from approvaltrail.dashboard.app import PAGES

pytestmark = pytest.mark.timeout(180)
OVERFLOW = (
    "Math.max(...[...document.querySelectorAll('.stMain, .stHtml')]"
    ".map(one => one.scrollWidth - one.clientWidth))"
)
"""By how many pixels the widest part of a page is wider than its place."""
SIZES = {"desk": (1440, 1000), "tablet": (768, 1024), "telephone": (390, 844)}
SCHEMES = ("light", "dark")


def urls(base: str, told: Told) -> list[str]:
    """Return the address of every page, with something on it."""
    stolen = told.nonce_of(tool="tidb_delete_cluster")
    more = {
        "trail": f"trail?nonce={stolen}",
        "overview": "",
        "ledger": "ledger?fate=expired",
        "refusals": "refusals?reason=bad_signature",  # a dozen rows are as good as fifty
        "events": "events?trust=claimed",
    }
    return [f"{base}/{more.get(path, path)}" for path in PAGES]


@dataclass
class Tour:
    """What was seen on a visit of every page, while every other origin was silent for ever."""

    asked_outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    headings: dict[str, int] = field(default_factory=dict)
    overflow: dict[str, int] = field(default_factory=dict)
    """By page and size, how many pixels the widest part is wider than its place."""
    violations: dict[str, list[str]] = field(default_factory=dict)


@pytest.fixture(scope="module", params=SCHEMES)
def tour(chromium: Browser, dashboard: str, told: Told, request: pytest.FixtureRequest) -> Tour:
    """Visit every page in one colour scheme, and look at it in every size."""
    made = Tour()
    axe = axe_source()

    def hold(route: Route) -> None:
        made.asked_outside.append(route.request.url)

    with visiting(chromium, dashboard, color_scheme=request.param) as (page, seen):
        page.route(lambda url: not url.startswith((dashboard, "data:", "blob:")), hold)
        for url in urls(dashboard, told):
            page.goto(url)
            settled(page)
            expect(page.locator("[role=status].at-status")).to_contain_text("Complete up to")
            # An icon is a word until its font is there.
            page.evaluate("document.fonts.ready")
            assert page.evaluate("document.fonts.check('1em \"Material Symbols Rounded\"')")
            made.headings[url] = page.locator("h1").count()
            for size, (width, height) in SIZES.items():
                page.set_viewport_size({"width": width, "height": height})
                settled(page)
                made.overflow[f"{url} on a {size}"] = page.evaluate(OVERFLOW)
                made.violations[f"{url} on a {size}"] = serious(page, axe)
        made.asked_outside += seen.outside
        made.errors += seen.errors
    return made


def test_d_19_d_20_nothing_is_asked_of_other_hosts(tour: Tour) -> None:
    """D-19, D-20: all pages draw while no other origin answers, and none was asked."""
    assert (tour.asked_outside, tour.errors) == ([], [])


def test_no_page_is_wider_than_the_screen(tour: Tour) -> None:
    """Nothing has to be scrolled sideways, on a desk or a telephone."""
    assert {url: over for url, over in tour.overflow.items() if over > 0} == {}


def test_every_page_has_one_heading_of_its_own(tour: Tour) -> None:
    """So that a screen reader can say where one is."""
    assert set(tour.headings.values()) == {1}


def test_axe_finds_nothing_serious(tour: Tour) -> None:
    """axe-core's rules, on every page, in both colour schemes and every size."""
    assert {url: found for url, found in tour.violations.items() if found} == {}


def test_everything_can_be_done_from_the_keyboard(
    opened: tuple[Page, Seen], dashboard: str, told: Told
) -> None:
    """From a reuse to its trail with Tab and Enter alone; what has the focus is seen."""
    page, _ = opened
    page.goto(f"{dashboard}/replays?range=7d")
    settled(page)
    page.get_by_label("Principal").focus()
    newest = str(told.reuses[0].nonce)
    for _ in range(12):
        page.keyboard.press("Tab")
        inside = "document.activeElement.closest('table.at') !== null"
        if page.evaluate(inside):
            break
    else:
        pytest.fail("Tab did not reach the table")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    page.keyboard.press("Enter")
    expect(page.locator(".at-heading")).to_contain_text(newest)


def test_hostile_text_does_nothing_in_a_real_browser(
    chromium: Browser, corner_dashboard: str, hostile_story: tuple[str, Story, list[str]]
) -> None:
    """D-05…D-08: every text is read as it was sent; nothing runs, links out, or is fetched."""
    _, _, nonces = hostile_story
    url = corner_dashboard
    with visiting(chromium, url) as (page, seen):
        page.goto(f"{url}/replays?range=1h")
        expect(page.locator("table.at tbody tr")).to_have_count(len(nonces))
        for width in (1440, 1300, 1024, 390):
            page.set_viewport_size({"width": width, "height": 1000})
            assert page.evaluate(OVERFLOW) <= 0, width
        page.set_viewport_size({"width": 1440, "height": 1000})
        page.get_by_label("Tenant").click()
        for index in range(len(nonces)):
            option = page.get_by_role("option", name=hostile_texts(index)[0], exact=True)
            expect(option).to_have_text(hostile_texts(index)[0])
        for index, nonce in enumerate(nonces):
            page.goto(f"{url}/trail?nonce={nonce}&all=true")
            expect(page.locator("table.at").first).to_contain_text("as the server judged")
            settled(page)
            shown = page.locator(".stMain").evaluate("one => one.textContent")
            for text in hostile_texts(index):
                assert text in shown, text
        for path in ("", "events", "refusals"):
            page.goto(f"{url}/{path}?range=1h&tool=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
            settled(page)
            assert page.locator(".stHtml img, .stHtml script:not(:only-child)").count() == 0
        links = page.locator(".stHtml a").evaluate_all("all => all.map(one => one.href)")
        assert all(link.startswith(url) for link in links)
        assert (seen.outside, seen.dialogs, seen.errors) == ([], [], [])
