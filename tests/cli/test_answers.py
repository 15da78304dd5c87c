"""The asking commands answer from the store, for people and for programs, with completeness."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.stored import store_story
from tests.support.story import Story

from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.schemas.events import Reason
from approvaltrail.store.connection import open_store
from approvaltrail.store.migrations import migrate

from .conftest import Ran

Command = Callable[..., Ran]
HOSTILE = "prod-7\x1b[2J[bold]\u202e"


@pytest.fixture
def story(database: str, reader_database: str, monkeypatch: pytest.MonkeyPatch) -> Story:
    """Store a token that came back once, from elsewhere, for a hostile target."""
    now = datetime.now(UTC)
    story = Story(now - timedelta(minutes=10))
    call = story.call(target=HOSTILE)
    nonce = story.issue(call)
    story.after(seconds=21).accept(call, nonce)
    story.after(minutes=3).replay(call | {"client_address": "203.0.113.9"}, nonce)
    story.refuse(call, Reason.MISSING_TOKEN)
    with open_store(database) as store:
        migrate(store)
        store_story(store, story.events, now)
    monkeypatch.setenv("CLICKHOUSE_DSN", database)
    monkeypatch.setenv("CLICKHOUSE_READER_DSN", reader_database)
    return story


def answer(ran: Ran, code: ExitCode = ExitCode.OK) -> dict[str, object]:
    assert ran.code == code, ran.err
    found = json.loads(ran.out)
    assert ran.out.isascii()
    assert isinstance(found, dict)
    return found


def test_replays_link_each_reuse_to_its_issuance(command: Command, story: Story) -> None:
    """`replays --last 24h --json` gives reuses with issuance, acceptance, gap and completeness."""
    found = answer(command("replays", "--last", "24h", "--json"))
    (reuse,) = found["reuses"]
    assert found["total"] == found["tokens"] == 1
    assert reuse["number"] == 1
    assert reuse["issuance"]["event"]["event_type"] == "issued"
    assert reuse["acceptance"]["event"]["event_type"] == "accepted"
    assert reuse["since_acceptance"] > 180
    assert "client_address" in [one["field"] for one in reuse["differences"]]
    assert found["completeness"]["state"] == "complete"


def test_a_trail_tells_the_whole_story_of_a_nonce(command: Command, story: Story) -> None:
    """`trail NONCE` shows what happened, in order, and whether that is all."""
    nonce = story.events[0].nonce or ""
    found = answer(command("trail", nonce, "--json"))
    assert set(found) == {"trail", "completeness"}
    assert found["trail"]["reuses_total"] == 1
    shown = command("trail", nonce).out
    for word in ("Issued", "accepted 21.0 s later", "presented again once", "needs review"):
        assert word in shown
    assert "complete up to" in shown


def test_a_nonce_that_begins_with_a_dash_is_no_option(command: Command, story: Story) -> None:
    """Base64url may begin with a dash: the nonce is looked up all the same."""
    assert command("trail", "-3JxP9QwAAAAAAAAAAAAA").code == ExitCode.NOTHING_FOUND


def test_an_unknown_nonce_is_said_to_be_unknown(command: Command, story: Story) -> None:
    """`trail` of a nonce that nobody issued ends with 6 and says so."""
    ran = command("trail", "A" * 22)
    assert ran.code == ExitCode.NOTHING_FOUND
    assert "Nothing is known" in ran.out


def test_events_are_searched_with_an_exact_total(command: Command, story: Story) -> None:
    """`events` narrows by type and counts exactly."""
    found = answer(command("events", "--type", "refused", "--json"))
    assert found["total"] == 1
    assert found["events"][0]["event"]["reason"] == "missing_token"
    assert answer(command("events", "--limit", "2", "--json"))["total"] == len(story.events)


@pytest.mark.parametrize("which", ["replays", "events", "trail"])
def test_hostile_text_does_not_reach_the_terminal(
    command: Command, story: Story, which: str
) -> None:
    """A target with escape sequences, markup and turned text is shown as visible characters."""
    arguments = [which, *([story.events[0].nonce or ""] if which == "trail" else [])]
    shown = command(*arguments).out
    assert "prod-7\\x1b[2J[bold]\\u202e" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_a_tenant_sees_its_own_alone(command: Command, story: Story) -> None:
    """`--tenant` answers as that tenant's viewer would be answered."""
    assert answer(command("events", "--tenant", "acme", "--json"))["total"] == len(story.events)
    assert answer(command("events", "--tenant", "beta", "--json"))["total"] == 0


def test_an_answer_that_is_not_proven_complete_can_be_refused(
    command: Command, story: Story, database: str
) -> None:
    """`--require-complete` ends with 7 when something lacks, and with 0 when nothing does."""
    assert command("replays", "--require-complete").code == ExitCode.OK
    other = Story(datetime.now(UTC) - timedelta(minutes=30), seed=9, instance="mcp-2")
    call = other.call()
    for _ in range(3):
        other.issue(call)
    with open_store(database) as store:
        store_story(store, [other.events[0], other.events[2]], datetime.now(UTC))
    assert command("replays", "--require-complete").code == ExitCode.INCOMPLETE
    assert "lacks" in command("pipeline").out


def test_pipeline_shows_each_producer(command: Command, story: Story) -> None:
    """`pipeline --json` lists producers with what they emitted and what is stored."""
    found = answer(command("pipeline", "--json"))
    (producer,) = found["completeness"]["producers"]
    assert producer["emitted"] == producer["stored"] == len(story.events)
    assert found["dead_letters"] == []


def test_migrate_says_what_is_pending_and_then_applies_it(
    command: Command, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`migrate --check` ends with 1 while tables lack; `migrate` makes them, once."""
    monkeypatch.setenv("CLICKHOUSE_DSN", database)
    due = answer(command("migrate", "--check", "--json"), ExitCode.FAILED_CHECK)
    assert due["pending"]
    assert answer(command("migrate", "--json"))["applied"] == due["pending"]
    assert answer(command("migrate", "--json"))["applied"] == []
    assert command("migrate", "--check").code == ExitCode.OK


def test_version_and_doctor_answer_programs(command: Command) -> None:
    """`version --json` and `doctor --json` are objects; without servers nothing is a problem."""
    assert answer(command("version", "--json"))["kafka (embedded)"] == "4.3.1"
    found = answer(command("doctor", "--json"))
    assert found["problems"] == 0
    assert {"python", "disk", "java", "engine"} <= {one["what"] for one in found["findings"]}


def test_journals_are_listed(
    command: Command, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`journal list` of an empty folder is an empty list; of none, an error that names it."""
    assert answer(command("journal", "list", str(tmp_path), "--json"))["journals"] == []
    missing = command("journal", "list", f"{tmp_path}/nowhere")
    assert missing.code == ExitCode.SETTINGS
    assert "nowhere" in missing.err
