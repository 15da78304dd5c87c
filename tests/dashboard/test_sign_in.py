"""Signing in, in a real browser and against a real provider: who sees what, and for how long."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc.jwk import RSAKey
from playwright.sync_api import Browser, Page, expect
from tests.dashboard.browsing import Seen, settled, visiting
from tests.dashboard.conftest import Told
from tests.dashboard.signing import BASE_PATH, served_with_sign_in, signs_in, visit
from tests.support.oidc_provider import OidcProvider, running
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from approvaltrail.dashboard.access.session import SESSION_COOKIE
from approvaltrail.dashboard.export.verifying import verify_export
from approvaltrail.schemas.events import Reason

pytestmark = pytest.mark.timeout(180)
expect.set_options(timeout=20_000)

Visitors = Callable[[], Page]
PEOPLE: dict[str, dict[str, Any]] = {
    "ana": {"email": "ana@corp.example", "roles": ["investigator"], "tenant": "acme"},
    "bea": {"email": "bea@corp.example", "roles": ["investigator"], "tenant": "beta"},
    "otto": {"email": "otto@corp.example", "roles": ["on-call"], "tenant": "every tenant"},
    "uma": {
        "email": "uma@corp.example",
        "roles": ["investigator", *(f"a-group-with-a-long-name-{n}" for n in range(500))],
        "tenant": "every tenant",
        "picture": "x" * 20_000,
    },
    "eve": {"email": "eve@corp.example", "roles": ["visitor"], "tenant": "acme"},
}


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    """Serve the identity provider."""
    with running(OidcProvider(PEOPLE)) as found:
        yield found


@pytest.fixture(scope="module")
def dashboard(
    told: Told, provider: OidcProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Serve the story to those who sign in."""
    log = tmp_path_factory.mktemp("signing") / "log"
    quick = {"APPROVALTRAIL_REFRESH_SECONDS": "2", "APPROVALTRAIL_RECENT_MINUTES": "90"}
    with served_with_sign_in(told.reader_dsn, provider, log, **quick) as url:
        yield url


@pytest.fixture
def visitors(chromium: Browser, dashboard: str) -> Iterator[Visitors]:
    """Give fresh profiles, as many as a test asks for; no script may fail in any of them."""
    with ExitStack() as opened:
        watched: list[Seen] = []

        def visitor() -> Page:
            page, seen = opened.enter_context(visiting(chromium, dashboard))
            watched.append(seen)
            return page

        yield visitor
        assert [
            (seen.errors, seen.dialogs) for seen in watched if seen.errors or seen.dialogs
        ] == []


def tenants_in(page: Page) -> set[str]:
    """Return the tenants of all rows of Events."""
    expect(page.locator("table.at tbody tr").first).to_be_visible()
    return set(page.locator("table.at td[data-label=Tenant]").all_inner_texts())


def test_d_09_a_deep_link_survives_the_sign_in(
    visitors: Visitors, dashboard: str, told: Told
) -> None:
    """D-09: page, nonce and absolute times come back, below the base path; no policy is broken."""
    page = visitors()
    broken: list[str] = []
    page.on("console", lambda said: broken.append(said.text) if "Security" in said.text else None)
    nonce = told.nonce_of(reason=Reason.WRONG_TARGET)
    asked = (
        f"{dashboard}/trail?range=custom&from=2026-01-01T00%3A00%3A00Z"
        f"&to=2099-01-01T00%3A00%3A00Z&nonce={nonce}"
    )
    answer = page.goto(asked)
    assert answer is not None
    signs_in(page, "ana")
    expect(page.locator(".at-heading")).to_contain_text(nonce)
    expect(page.locator(".at-viewer")).to_contain_text("ana@corp.example")
    split = urlsplit(page.url)
    assert split.path == f"{BASE_PATH}/trail"
    assert parse_qs(split.query) == parse_qs(urlsplit(asked).query)
    expect(page.locator(".at-timeline")).to_contain_text("reuse 1 of")
    assert broken == []
    (cookie,) = [one for one in page.context.cookies() if one["name"] == SESSION_COOKIE]
    flags = (cookie["httpOnly"], cookie["sameSite"], cookie["path"])
    assert flags == (True, "Lax", BASE_PATH)
    names = {one["name"] for one in page.context.cookies()}
    assert names == {SESSION_COOKIE, "_streamlit_xsrf"}


@pytest.mark.parametrize("order", [("ana", "bea"), ("bea", "ana")], ids="-then-".join)
def test_d_16_the_same_page_shows_each_their_own_tenant(
    visitors: Visitors, dashboard: str, order: tuple[str, str]
) -> None:
    """D-16, D-17: same filters at the same time, in either order; each signs in for themselves."""
    own = {"ana": "acme", "bea": "beta"}
    for person in order:
        page = visitors()
        page.goto(f"{dashboard}/events?range=7d&tool=tidb_create_backup")
        signs_in(page, person)  # a fresh browser is asked, whoever came before
        assert tenants_in(page) == {own[person]}
        expect(page.locator(".at-viewer")).to_contain_text(f"{person}@corp.example")
        page.goto(f"{dashboard}/events?range=7d&tenant={'beta' if person == 'ana' else 'acme'}")
        assert tenants_in(page) == {own[person]}


def test_d_18_two_browsers_do_not_disturb_each_other(visitors: Visitors, dashboard: str) -> None:
    """D-18: ten actions in turn, and each keeps its name, tenant, filter and page."""
    pages = {"ana": visitors(), "bea": visitors()}
    for person, page in pages.items():
        page.goto(f"{dashboard}/events?range=7d")
        signs_in(page, person)
        expect(page.locator("table.at")).to_be_visible()
    tools = ["tidb_execute", "tidb_create_backup", "tidb_create_cluster"]
    for turn in range(10):
        person, page = list(pages.items())[turn % 2]
        tool = tools[turn % 3]
        box = page.get_by_label("Tool", exact=True)
        box.fill(tool)
        box.press("Enter")
        expect(page.locator(".at-chips")).to_contain_text(tool)
        settled(page)
        assert tenants_in(page) == {"acme" if person == "ana" else "beta"}
        assert set(page.locator("table.at td[data-label='Tool · target']").all_inner_texts())
        expect(page.locator(".at-viewer")).to_contain_text(f"{person}@corp.example")
        assert parse_qs(urlsplit(page.url).query)["tool"] == [tool]


def test_on_call_sees_no_address_and_exports_nothing(
    visitors: Visitors, dashboard: str, told: Told
) -> None:
    """Every page is searched for every address of the story; a filter by address is refused."""
    page = visitors()
    page.goto(f"{dashboard}/events?range=7d")
    signs_in(page, "otto")
    addresses = {one.client_address for one in told.story.events} | {"10.0.0.1"}
    stolen = told.nonce_of(reason=Reason.WRONG_TARGET)
    for path in ("events?range=7d", "replays?range=7d", f"trail?nonce={stolen}&all=true"):
        page.goto(f"{dashboard}/{path}")
        expect(page.locator("table.at").first).to_be_visible()
        if path.startswith("trail"):
            expect(page.get_by_text("Raw events (JSON)")).to_be_visible()
        shown = page.content()
        assert [one for one in addresses if re.search(rf"\b{re.escape(str(one))}\b", shown)] == []
        assert page.get_by_role("button", name="Export").count() == 0
    expect(page.locator("table.at").first).to_contain_text("203.0.x.x·")
    page.goto(f"{dashboard}/events?range=7d&address=203.0.113.9")
    expect(page.get_by_text("addresses are masked for the role on-call")).to_be_visible()


def test_an_investigator_walks_from_overview_to_evidence(
    visitors: Visitors, dashboard: str, told: Told, tmp_path: Path
) -> None:
    """Overview, reuses, trail, export; the file verifies, and says who took it."""
    page = visitors()
    page.goto(f"{dashboard}/?range=7d")
    signs_in(page, "uma")
    page.get_by_role("link", name="→ Replays").first.click()
    nonce = told.nonce_of(reason=Reason.WRONG_TARGET)
    page.get_by_role("link", name=f"Trail of nonce {nonce}").first.click()
    expect(page.locator(".at-timeline")).to_contain_text("203.0.113.9")
    page.get_by_role("button", name="Export").click()
    page.get_by_role("button", name="Prepare").click()
    button = page.get_by_role("button", name="Download")
    with page.expect_download() as begun:
        button.click()
    file = tmp_path / begun.value.suggested_filename
    begun.value.save_as(file)
    found = verify_export(file)
    mine = [one for one in told.story.events if one.nonce == nonce]
    assert str(found) == f"verified: {len(mine)} events"
    assert found.manifest is not None
    assert found.manifest.exporter.principal == "uma@corp.example"
    assert found.manifest.exporter.subject == "subject-of-uma"
    assert file.name.startswith("approvaltrail-trail-")
    with httpx.Client() as stranger:
        media = stranger.get(begun.value.url)
    assert media.status_code == 401


def test_d_10_a_session_that_ends_shows_nothing_more_and_comes_back(
    visitors: Visitors, dashboard: str, provider: OidcProvider
) -> None:
    """D-10: the open page says so by itself; signing in again leads back to the same filters."""
    page = visitors()
    status = page.locator("[role=status].at-status")
    try:
        for seconds in (5, 20, 60):  # on a busy machine a short session ends before a page is drawn
            provider.token_seconds = seconds
            page.goto(f"{dashboard}/pipeline?range=6h&tenant=gamma")
            signs_in(page, "uma")
            with suppress(AssertionError):
                expect(status).to_be_visible(timeout=1_000 * seconds)
                break
        expect(page.get_by_text("Your session has ended")).to_be_visible(timeout=70_000)
        expect(page.locator("table.at")).to_have_count(0)
    finally:
        provider.token_seconds = 3600
    page.get_by_role("link", name="Sign in", exact=True).click()
    signs_in(page, "uma")
    expect(page.locator("table.at").first).to_be_visible()
    split = urlsplit(page.url)
    assert (split.path, parse_qs(split.query)) == (
        f"{BASE_PATH}/pipeline",
        {"range": ["6h"], "tenant": ["gamma"]},
    )
    page.get_by_role("link", name="Sign out").click()
    expect(page.get_by_role("heading", name="Signed out")).to_be_visible()
    page.goto(f"{dashboard}/events")
    expect(page.get_by_role("heading", name="Who are you?")).to_be_visible()


def test_an_unknown_role_sees_the_refusal_alone(visitors: Visitors, dashboard: str) -> None:
    """Somebody whom the provider knows and the dashboard does not."""
    page = visitors()
    page.goto(f"{dashboard}/events")
    signs_in(page, "eve")
    expect(page.get_by_role("heading", name="You may not look at this")).to_be_visible()
    assert SESSION_COOKIE not in {one["name"] for one in page.context.cookies()}


# Without a browser


@pytest.mark.parametrize(
    "spoil",
    [
        {"nonce": "another"},
        {"aud": "another-client"},
        {"iss": "https://id.evil.example"},
        {"exp": 1},
        {"sub": ""},
    ],
    ids=lambda spoil: next(iter(spoil)),
)
def test_an_identity_that_does_not_hold_signs_nobody_in(
    dashboard: str, provider: OidcProvider, spoil: dict[str, Any]
) -> None:
    """Nonce, audience, issuer, end and subject of the token are all checked."""
    provider.spoil = spoil
    try:
        with httpx.Client() as client:
            answer = visit(client, f"{dashboard}/events", "ana")
            assert answer.status_code in {403, 502}
            assert SESSION_COOKIE not in client.cookies
    finally:
        provider.spoil = {}


def test_a_token_of_another_key_signs_nobody_in(dashboard: str, provider: OidcProvider) -> None:
    """The signature is checked against the provider's published keys."""
    provider.signing_key = RSAKey.generate_key(2048, {"kid": "test"})
    try:
        with httpx.Client() as client:
            assert visit(client, f"{dashboard}/events", "ana").status_code == 502
            assert SESSION_COOKIE not in client.cookies
    finally:
        provider.signing_key = None


def test_an_unsigned_token_signs_nobody_in(dashboard: str, provider: OidcProvider) -> None:
    """A provider that offers to leave signatures out is not taken up on it."""
    provider.unsigned = True
    try:
        with httpx.Client() as client:
            assert visit(client, f"{dashboard}/events", "ana").status_code == 502
            assert SESSION_COOKIE not in client.cookies
    finally:
        provider.unsigned = False


def test_a_callback_that_was_not_begun_here_signs_nobody_in(dashboard: str) -> None:
    """Another browser's code, a forged state, or the same callback twice."""
    with httpx.Client() as honest, httpx.Client() as victim:
        answer = visit(honest, f"{dashboard}/events?tool=x", "ana")
        assert (answer.status_code, answer.headers["location"]) == (
            303,
            f"{BASE_PATH}/events?tool=x",
        )
        callback = str(answer.request.url)
        assert victim.get(callback).status_code == 502
        assert honest.get(callback).status_code == 502
        assert victim.get(f"{dashboard}/oauth2callback?state=&code=x").status_code == 502
        assert SESSION_COOKIE not in victim.cookies
        assert "trail" not in victim.get(f"{dashboard}/media/x").text


def test_no_socket_opens_without_a_session(dashboard: str) -> None:
    """The connection that carries the data is refused before it begins."""
    url = dashboard.replace("http", "ws", 1) + "/_stcore/stream"
    with httpx.Client() as client:
        visit(client, f"{dashboard}/events", "ana")
        good = client.cookies[SESSION_COOKIE]
    for cookie in (None, f"{SESSION_COOKIE}=x", f"{SESSION_COOKIE}={good[:-2]}xx"):
        headers = {"cookie": cookie} if cookie else {}
        with pytest.raises(InvalidStatus) as refused:
            connect(url, additional_headers=headers, open_timeout=10).close()
        assert refused.value.response.status_code == 403
    with connect(url, additional_headers={"cookie": f"{SESSION_COOKIE}={good}"}):
        pass
