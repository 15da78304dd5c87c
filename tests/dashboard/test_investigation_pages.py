"""Refusals, Ledger and Pipeline, drawn from the real store without a browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.dashboard.conftest import Make, Told
from tests.dashboard.reading import Reader
from tests.dashboard.test_pages import read
from tests.support.stored import heartbeat_of, store_events, store_story
from tests.support.story import Story

from approvaltrail.dashboard import words
from approvaltrail.dashboard.access.viewer import Role, local_viewer
from approvaltrail.dashboard.data import Answers
from approvaltrail.dashboard.errors import AccessRefusedError
from approvaltrail.dashboard.settings import DashboardSettings
from approvaltrail.dashboard.testing import drawn
from approvaltrail.schemas.events import EventType, Reason
from approvaltrail.schemas.messages import Probe
from approvaltrail.store.answers import EventFilter, TenantScope, TimeRange
from approvaltrail.store.connection import Store
from approvaltrail.store.writing import insert_heartbeats, retire_producer

pytestmark = pytest.mark.timeout(120)
Looking = Callable[[str], None]


def page(path: str, **query: str) -> Reader:
    return read(drawn(path, **query))


def test_refusals_are_told_by_cause_and_each_count_leads_to_its_rows(story: Told) -> None:
    """Causes with their counts, a link for each, and every refusal below."""
    refused = [one for one in story.story.events if one.event_type is EventType.REFUSED]
    shown = page("refusals")
    assert f"{len(refused)} refusals" in shown.text
    assert len(shown.rows) - 1 == min(50, len(refused))
    for reason, count in Counter(one.reason for one in refused).items():
        assert reason is not None
        assert f"{words.REASONS[reason]}{count}" in shown.text
        assert f"refusals?reason={reason.value}" in shown.links
    narrowed = page("refusals", reason="bad_signature")
    assert "12 refusals" in narrowed.text
    assert len(narrowed.rows) - 1 == 12
    assert "The filters exclude all refusals" in page("refusals", tool="no_such_tool").text


def test_addresses_are_neither_ranked_nor_searched_for_a_role_that_may_not_see_them(
    story: Told,
) -> None:
    """What the role on-call may not see comes from no new query either."""
    settings = DashboardSettings.from_environment()
    viewer = replace(local_viewer(TenantScope.everything()), role=Role.ON_CALL)
    answers = Answers.of(settings, viewer, b"key")
    span = TimeRange(story.now - timedelta(days=2), story.now + timedelta(days=1))
    ranked = answers.ranking(span, EventFilter(), ("tool", "client_address"))
    assert set(ranked) == {"tool"}
    by_address = EventFilter(address="203.0.113.9")
    with pytest.raises(AccessRefusedError):
        answers.histogram(span, by_address)
    with pytest.raises(AccessRefusedError):
        answers.ranking(span, by_address, ("tool",))


def test_the_ledger_balance_closes(story: Told) -> None:
    """Issued is the sum of the fates, as counted from the story itself."""
    events = story.story.events
    issued = {one.nonce for one in events if one.event_type is EventType.ISSUED}
    accepted = {one.nonce for one in events if one.event_type is EventType.ACCEPTED}
    shown = page("ledger")
    expired = len(issued - accepted)
    assert f"{len(issued)} distinct nonces issued = " in shown.text
    assert f"{len(issued & accepted)} accepted + " in shown.text
    assert f"{expired} expired unspent" in shown.text
    assert "It closes: every nonce issued has one fate" in shown.text
    assert "2 acceptances by tools that spend no nonce" in shown.text
    assert "None in this range: no server refused" in shown.text
    listed = page("ledger", fate="expired")
    nonces = set().union(*(row.nonces for row in listed.rows))
    assert nonces == issued - accepted


def test_a_remainder_of_the_balance_is_named(new_store: Make, looking_at: Looking) -> None:
    """A nonce found spent whose acceptance is not stored is said, in the sum and below it."""
    store, reader = new_store()
    looking_at(reader)
    now = datetime.now(UTC)
    journal = Story(now - timedelta(minutes=5))
    call = journal.call()
    nonce = journal.issue(call)
    journal.after(seconds=1).accept(call, nonce, outcome=None)
    journal.after(seconds=1).replay(call, nonce)
    store_story(
        store, [one for one in journal.events if one.event_type is not EventType.ACCEPTED], now
    )
    shown = page("ledger")
    assert "It closes only with a remainder: 1 spent, acceptance not stored" in shown.text
    assert nonce in set().union(
        *(row.nonces for row in page("ledger", fate="spent_unrecorded").rows)
    )


@pytest.fixture
def two_services(new_store: Make, looking_at: Looking) -> Store:
    """Tell of a ledger that is down on one server of another service, and a producer retired."""
    store, reader = new_store()
    looking_at(reader)
    now = datetime.now(UTC)
    good = Story(now - timedelta(minutes=30), seed=1, instance="web-1")
    good.issue(good.call())
    good.events = [one.model_copy(update={"service": "console-mcp"}) for one in good.events]
    store_story(store, good.events, now)
    bad = Story(now - timedelta(minutes=20), seed=2, instance="mcp-9")
    for _ in range(3):
        nonce = bad.after(seconds=30).issue(bad.call())
        bad.after(seconds=1).refuse(bad.call(), Reason.LEDGER_UNAVAILABLE, nonce)
    store_events(store, bad.events)
    insert_heartbeats(store, [heartbeat_of(bad.events, now, ledger_probe=Probe.FAILING)])
    retire_producer(
        store,
        "0190a000-0000-7000-8000-00000000aaaa",
        reason="its host is gone",
        retired_by="ops",
        retired_at=now,
    )
    return store


def test_outages_and_probes_of_the_ledger_are_told(two_services: Store) -> None:
    """The server, the cause, from when to when, how many refusals, and the link to them."""
    shown = page("ledger")
    row = next(one for one in shown.rows if "ledger unreachable" in one.text)
    assert "tidb-mcp · mcp-9" in row.text
    assert "1 min 2 s" in row.text
    (link,) = row.links
    assert link.startswith("refusals?range=custom&from=")
    assert link.endswith("&reason=ledger_unavailable")
    probes = {one.text.split("·")[0].strip(): one.text for one in shown.rows if "open" in one.text}
    assert "failing" in probes["tidb-mcp"]
    assert "ok" in probes["console-mcp"]
    overview = page("overview")
    assert "Ledger failing on 1 of 2 servers" in overview.text
    assert "probe failing on 1 of 2 servers" in overview.text
    assert "ledger" in overview.links


def test_the_pipeline_is_told_by_service_with_the_retired_apart(two_services: Store) -> None:
    """Services in order, each with its producers; who is retired, and why; how the sink is."""
    shown = page("pipeline")
    assert shown.text.index("console-mcp 1 live") < shown.text.index("tidb-mcp 1 live")
    assert "Retired producers" in shown.text
    assert "its host is gone" in shown.text
    assert "Last stored" in shown.text
    assert "in the last 15 min" in shown.text


def test_a_scoped_viewer_learns_of_its_own_ledger_alone(
    story: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts are the tenant's, and servers, which serve all tenants, are not told of."""
    monkeypatch.setenv("APPROVALTRAIL_DASHBOARD_TENANT", "beta")
    issued = {
        one.nonce
        for one in story.story.events
        if one.event_type is EventType.ISSUED and one.tenant == "beta"
    }
    shown = page("ledger")
    assert f"{len(issued)} distinct nonces issued" in shown.text
    assert "a viewer of one is not told of them" in shown.text
    assert "mcp-1" not in shown.text
    app = drawn("refusals")
    assert not [one for one in app.selectbox if one.key == "tenant"]


def test_tenants_are_chosen_from_those_of_the_range(story: Told) -> None:
    """The list holds the store's names, and what the URL says although nobody has it."""
    app = drawn("events", tenant="elsewhere")
    tenants = app.selectbox(key="tenant")
    assert tenants.options == ["acme", "beta", "elsewhere", "gamma"]
    assert tenants.value == "elsewhere"


def test_a_custom_range_begins_with_what_was_shown(story: Told) -> None:
    """Whoever chooses bounds begins with the last ones, not with nothing."""
    app = drawn("events", range="1h")
    app.selectbox(key="range").set_value("custom").run()
    start, end = (datetime.fromisoformat(app.text_input(key=key).value) for key in ("from", "to"))
    assert end - start == timedelta(hours=1)


def test_a_label_is_a_filter_and_the_same_wherever_a_reuse_is_found(story: Told) -> None:
    """Narrowing by a label shows its reuses; a range or filter around it changes no label."""
    retry = story.nonce_of(tool="tidb_create_backup")
    shown = page("replays", label="consistent_with_retry")
    assert [row.nonces for row in shown.rows[1:]] == [{retry}]
    assert "1 labelled “Consistent with a retry”." in shown.text
    twice = next(one for one in story.reuses if one.nonce == retry).occurred_at
    narrow = {
        "range": "custom",
        "from": (twice - timedelta(seconds=1)).isoformat(),
        "to": (twice + timedelta(seconds=1)).isoformat(),
    }
    assert "Consistent with a retry" in page("replays", **narrow).rows[1].text
