"""The pages, drawn from the real store without a browser."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from streamlit.testing.v1 import AppTest
from tests.dashboard.conftest import Make, Told
from tests.dashboard.reading import Reader
from tests.support.stored import store_events, store_story
from tests.support.story import Story

from approvaltrail.dashboard import formats
from approvaltrail.dashboard.app import PAGES
from approvaltrail.dashboard.testing import drawn, markup_of, text_of
from approvaltrail.schemas.events import EventType, Reason

pytestmark = pytest.mark.timeout(120)
NOWHERE = "http://reader:sesame@127.0.0.1:9/nothing"


def read(app: AppTest) -> Reader:
    assert [one.message for one in app.exception] == []
    return Reader(markup_of(app))


def replays(**query: str) -> Reader:
    return read(drawn("replays", **query))


@pytest.mark.parametrize("path", PAGES)
def test_every_page_begins_with_the_status_line(story: Told, path: str) -> None:
    """Each page says first how far what it shows is complete."""
    page = read(drawn(path, nonce=story.reuses[0].nonce) if path == "trail" else drawn(path))
    assert ("role", "status") in page.attributes
    assert "Complete up to" in page.text
    assert "for the 1 producer heard from" in page.text


def test_replays_lists_every_reuse_and_leads_each_row_to_its_own_trail(story: Told) -> None:
    """D-01: a row's own links name the row's own nonce, newest first, none left out."""
    rows = replays().rows[1:]
    assert [row.nonces for row in rows] == [{one.nonce} for one in story.reuses]
    assert all(row.text.count(one.nonce) for row, one in zip(rows, story.reuses, strict=True))


def test_d_04_a_filtered_row_leads_to_its_own_trail(story: Told) -> None:
    """D-04: with a filter, rows are still resolved to exactly what they show."""
    page = replays(tenant="beta")
    expected = [one for one in story.reuses if one.tenant == "beta"]
    assert [row.nonces for row in page.rows[1:]] == [{one.nonce} for one in expected]
    assert "1 reuse of 1 token" in page.text


def test_strict_replays_are_a_filter(story: Told) -> None:
    """What the gate itself called a replay can be seen alone."""
    strict = [one for one in story.reuses if one.event_type is EventType.REPLAYED]
    assert len(replays(strict="true").rows) - 1 == len(strict) < len(story.reuses)


def test_filters_come_from_the_url(story: Told) -> None:
    """A link repeats the view: tool and principal narrow the list."""
    rows = replays(tool="tidb_create_backup", principal="bo@corp.example").rows[1:]
    assert [row.nonces for row in rows] == [{story.nonce_of(tool="tidb_create_backup")}]


def test_claimed_nonces_are_counted_and_linked_to_no_trail(story: Told) -> None:
    """An attacker chose the text, so it leads nowhere."""
    page = replays()
    assert "12 presentations with a nonce that no signature vouches for" in page.text
    events = read(drawn("events", trust="claimed"))
    assert len(events.rows) - 1 == 12
    assert not any(row.nonces for row in events.rows)


def test_labels_name_retry_and_review(story: Told) -> None:
    """The lost answer reads as a retry, the stolen token does not."""
    by_nonce = {next(iter(row.nonces)): row.text for row in replays().rows[1:]}
    assert "Consistent with a retry" in by_nonce[story.nonce_of(tool="tidb_create_backup")]
    assert "Needs review" in by_nonce[story.nonce_of(tool="tidb_delete_cluster")]


def test_a_trail_tells_the_whole_story(story: Told) -> None:
    """To whom, for what, who spent it, what came of it, how often again, and what differs."""
    nonce = story.nonce_of(tool="tidb_delete_cluster")
    page = read(drawn("trail", nonce=nonce))
    for told in (
        "to ana@corp.example for tidb_delete_cluster · prod-7 in tenant acme",
        "accepted 21 s later, the work succeeded",
        "presented again 5 times",
        "None of the reuses ran.",
        "reuse 1 of 5",
        "reuse 5 of 5",
        "another session than the accepted call",
        "It would have been consistent with a retry, with",
        "at most 120 s after the acceptance",
        "203.0.113.9via trusted proxy",
        "says it is python-httpx/0.28",
        "delete prod-7 (3 nodes, 2 backups)",
        "What else this caller did",
    ):
        assert told in page.text, told
    assert "credential" not in page.text.split("What differs")[1].split("What else")[0]


def test_a_trail_can_show_the_fields_that_agree(story: Told) -> None:
    """Only what differs is shown, until all is asked for."""
    nonce = story.nonce_of(tool="tidb_delete_cluster")
    assert "credential" in read(drawn("trail", nonce=nonce, all="true")).text


def test_a_second_acceptance_is_not_called_harmless(story: Told) -> None:
    """On an unledgered tool the work may have run twice, and the page says so."""
    page = read(drawn("trail", nonce=story.nonce_of(tool="tidb_execute")))
    assert "accepted again, so the work may have run more than once" in page.text


def test_a_trail_without_its_issuance_says_what_is_missing(
    new_store: Make, looking_at: Callable[[str], None]
) -> None:
    """What is not stored stands in its place, with what is known of why."""
    store, reader = new_store()
    looking_at(reader)
    now = datetime.now(UTC)
    journal = Story(now - timedelta(minutes=5))
    call = journal.call()
    nonce = journal.issue(call)
    journal.after(seconds=5).accept(call, nonce, outcome=None)
    journal.after(seconds=5).replay(call, nonce)
    store_story(store, journal.events[1:], now)
    page = read(drawn("trail", nonce=nonce))
    assert "Issuance not stored" in page.text
    assert "issuance missing" in page.text
    assert "outcome unknown" in page.text
    assert "Incomplete" in page.text


def test_a_nonce_that_is_unknown_or_merely_claimed_is_told_apart(story: Told) -> None:
    """Nothing is made up about either."""
    assert "Nothing is stored of this nonce" in read(drawn("trail", nonce="nobody-knows-it")).text
    forged = next(one for one in story.story.events if one.reason is Reason.BAD_SIGNATURE)
    assert "nobody vouches for" in read(drawn("trail", nonce=str(forged.nonce))).text
    assert "Which nonce?" in read(drawn("trail")).text


@pytest.mark.parametrize("path", [path for path in PAGES if path != "trail"])
def test_a_nonce_in_the_url_opens_its_trail_from_any_page(story: Told, path: str) -> None:
    """A link with `?nonce=` is enough, whatever page it names."""
    nonce = str(story.reuses[0].nonce)
    app = drawn(path, nonce=nonce, range="7d", tenant="acme")
    assert "Timeline" in read(app).text
    assert app.query_params["nonce"] == nonce
    assert app.selectbox(key="range").value == "7d"
    assert app.selectbox(key="tenant").value == "acme"


def test_a_nonce_put_into_the_box_opens_its_trail(story: Told) -> None:
    """Pasting by hand leads to the same page."""
    nonce = str(story.reuses[0].nonce)
    app = drawn("pipeline")
    app.text_input(key="find").input(f"  {nonce}\n").run()
    assert "Timeline" in read(app).text
    assert app.query_params["nonce"] == nonce


def test_a_token_put_into_the_box_leads_to_its_nonce_and_goes_nowhere_else(story: Told) -> None:
    """A token that came back can be pasted whole; it enters no URL, page or session."""
    nonce = str(story.reuses[0].nonce)
    payload = json.dumps({"nonce": nonce, "tool": "x"}).encode()
    token = f"at1.{base64.urlsafe_b64encode(payload).decode().rstrip('=')}.{'A' * 43}"
    app = drawn()
    app.text_input(key="find").input(token).run()
    page = read(app)
    assert "Timeline" in page.text
    everywhere = text_of(app) + repr(app.query_params) + repr(app.session_state.to_dict())
    assert token not in everywhere
    assert token.split(".")[1] not in everywhere


def test_a_token_that_was_cut_says_so(story: Told) -> None:
    """What looks like a token and holds no nonce is not searched for as one."""
    app = drawn()
    app.text_input(key="find").input("at1." + "A" * 60).run()
    page = read(app)
    assert "No nonce in that token" in page.text
    assert "A" * 60 not in text_of(app) + repr(app.query_params)


def test_d_13_the_range_holds_its_start_and_not_its_end(story: Told) -> None:
    """D-13: bounds in the URL are the same instants in the query: start in, end out."""
    last = story.reuses[0].occurred_at.replace(microsecond=0)
    whole = last + timedelta(seconds=1)

    def tokens(start: datetime, end: datetime) -> list[set[str]]:
        query = {"range": "custom", "from": formats.iso(start), "to": formats.iso(end)}
        return [row.nonces for row in replays(**query).rows[1:]]

    assert {story.reuses[0].nonce} in tokens(last, whole)
    exact = story.reuses[0].occurred_at
    if exact.microsecond % 1000 == 0:
        assert tokens(exact, whole)
    assert tokens(last - timedelta(seconds=1), last) == []


def test_a_range_that_cannot_be_read_says_so(story: Told) -> None:
    """Wrong bounds are named, and what is shown instead."""
    page = replays(range="custom", from_="yesterday", to="")
    assert "Give both bounds in UTC" in page.text


def test_overviews_numbers_lead_to_their_rows(story: Told) -> None:
    """Every count is a link, and counts what the story tells."""
    page = read(drawn())
    issued = sum(one.event_type is EventType.ISSUED for one in story.story.events)
    assert f"Issued{issued}" in page.text.replace(" ", "")
    for link in ("events?type=issued", "events?type=accepted", "refusals"):
        assert link in page.links
    assert "replays?strict=true" in page.links
    assert "Boundary under test: 7 reuses of 3 tokens in the last 90 min; 1 accepted" in page.text
    assert "forged signature" in page.text


def test_events_are_paged_with_an_exact_total(story: Told) -> None:
    """The next page begins where this one ends."""
    first, second = read(drawn("events")), read(drawn("events", offset="50"))
    total = f"{len(story.story.events):,}"
    assert f"1–50 of {total}" in first.text
    assert f"51–100 of {total}" in second.text
    assert "events?offset=50" in first.links
    assert read(drawn("events", offset="9" * 5000)).text.count("Complete up to") == 1


def test_an_empty_list_says_which_kind_of_empty_it_is(
    story: Told, new_store: Make, looking_at: Callable[[str], None]
) -> None:
    """Nothing recorded, filters that exclude all, and an empty range have different cures."""
    excluded = replays(tool="no_such_tool")
    assert "The filters exclude all reuses" in excluded.text
    assert "replays" in excluded.links
    early = {"range": "custom", "from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"}
    assert "No reuses in this range" in replays(**early).text
    _, reader = new_store()
    looking_at(reader)
    for path in ("overview", "replays", "events"):
        assert "Nothing recorded yet" in read(drawn(path)).text


@pytest.mark.parametrize("path", PAGES)
def test_a_store_that_does_not_answer_is_told_on_every_page(
    looking_at: Callable[[str], None], path: str
) -> None:
    """No page breaks, none shows a number, and nothing of the DSN is told."""
    looking_at(NOWHERE)
    app = drawn(path, nonce="abc") if path == "trail" else drawn(path)
    page = read(app)
    assert "Store unreachable" in page.text
    assert "sesame" not in text_of(app)
    assert "Complete" not in page.text


def test_missing_settings_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dashboard that was told nothing says which setting it lacks."""
    for name in ("APPROVALTRAIL_DASHBOARD_DSN", "APPROVALTRAIL_CLICKHOUSE_DSN", "CLICKHOUSE_DSN"):
        monkeypatch.delenv(name, raising=False)
    assert "APPROVALTRAIL_DASHBOARD_DSN: is not set" in read(drawn()).text


def test_d_16_a_scoped_viewer_sees_one_tenant_whoever_looked_before(
    story: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-16: kept answers belong to a scope; the order of visitors changes nothing."""

    def tenants_seen(tenant: str | None) -> set[str]:
        if tenant is None:
            monkeypatch.delenv("APPROVALTRAIL_DASHBOARD_TENANT", raising=False)
        else:
            monkeypatch.setenv("APPROVALTRAIL_DASHBOARD_TENANT", tenant)
        text = read(drawn("events", type="issued")).text
        producers = story.story.producer_id in read(drawn("pipeline")).text
        assert producers is (tenant is None)
        return {one for one in ("acme", "beta", "gamma") if one in text}

    assert tenants_seen(None) == {"acme", "beta", "gamma"}
    assert tenants_seen("beta") == {"beta"}
    assert tenants_seen("gamma") == {"gamma"}
    assert tenants_seen(None) == {"acme", "beta", "gamma"}


def test_a_scoped_viewer_cannot_widen_the_scope_by_the_url(
    story: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tenant in the URL narrows what may be seen and never widens it."""
    monkeypatch.setenv("APPROVALTRAIL_DASHBOARD_TENANT", "beta")
    text = read(drawn("events", tenant="acme")).text
    assert "acme" not in text
    nonce = story.nonce_of(tool="tidb_delete_cluster")
    trail = read(drawn("trail", nonce=nonce)).text
    assert "ana@corp.example" not in trail.split("presented again")[0]
    pipeline = read(drawn("pipeline")).text
    assert story.story.producer_id not in pipeline


def test_what_lacks_is_on_the_pipeline_page(
    new_store: Make, looking_at: Callable[[str], None]
) -> None:
    """A gap is named by producer and numbers, first on the status line."""
    store, reader = new_store()
    looking_at(reader)
    now = datetime.now(UTC)
    journal = Story(now - timedelta(hours=1))
    for _ in range(6):
        journal.after(seconds=1).issue(journal.call())
    kept = [one for one in journal.events if one.sequence not in {2, 3}]
    store_story(store, kept, now)
    page = read(drawn("pipeline"))
    assert "Incomplete" in page.text
    assert "2–3" in page.text
    assert "2 events" in page.text


def test_stored_twice_is_shown_once(new_store: Make, looking_at: Callable[[str], None]) -> None:
    """Redelivery changes no count and no row."""
    store, reader = new_store()
    looking_at(reader)
    now = datetime.now(UTC)
    journal = Story(now - timedelta(minutes=9))
    call = journal.call()
    nonce = journal.issue(call)
    journal.after(seconds=1).accept(call, nonce)
    journal.after(seconds=1).replay(call, nonce)
    store_story(store, journal.events, now)
    store_events(store, journal.events)
    page = replays()
    assert "1 reuse of 1 token" in page.text
    assert [row.nonces for row in page.rows[1:]] == [{nonce}]
