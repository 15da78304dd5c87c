"""Cases of other audit logs, as they read on our pages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from tests.dashboard.conftest import Make
from tests.dashboard.test_pages import read
from tests.support.stored import store_story
from tests.support.story import Story

from approvaltrail.dashboard.testing import drawn

pytestmark = pytest.mark.timeout(120)
Tell = Callable[..., None]


@pytest.fixture
def told_by(new_store: Make, looking_at: Callable[[str], None]) -> Tell:
    """Store a story of its own and look at it."""

    def tell(story: Story, lost: range = range(0)) -> None:
        store, reader = new_store()
        looking_at(reader)
        kept = [one for one in story.events if one.sequence not in lost]
        store_story(store, kept, datetime.now(UTC))

    return tell


def ten_minutes_ago() -> Story:
    return Story(datetime.now(UTC) - timedelta(minutes=10))


def test_s_01_each_replay_is_numbered_and_tied_to_where_it_came_from(
    told_by: Tell,
) -> None:
    """S-01: three presentations of a spent token are three rows, one trail, numbered 1 to 3."""
    story = ten_minutes_ago()
    call = story.call()
    nonce = story.issue(call)
    story.after(seconds=5).accept(call, nonce)
    for _ in range(3):
        story.after(seconds=20).replay(call, nonce)
    told_by(story)
    rows = read(drawn("replays")).rows[1:]
    assert [one for row in rows for one in ("1 of 3", "2 of 3", "3 of 3") if one in row.text] == [
        "3 of 3",
        "2 of 3",
        "1 of 3",
    ]
    assert all(row.nonces == {nonce} for row in rows)
    trail = read(drawn("trail", nonce=nonce)).text
    assert all(f"reuse {number} of 3" in trail for number in (1, 2, 3))
    assert "presented again 3 times" in trail


def test_s_13_a_range_that_lacks_events_says_so_on_every_list(
    told_by: Tell,
) -> None:
    """S-13: emitted and not stored is incomplete in words, with the numbers, not an empty list."""
    story = Story(datetime.now(UTC) - timedelta(hours=2))
    for _ in range(60):
        story.after(seconds=1).issue(story.call())
    told_by(story, lost=range(11, 51))
    for path in ("overview", "replays", "refusals", "events", "ledger", "pipeline"):
        text = read(drawn(path)).text
        assert "Incomplete: " in text
        assert "lacks 11–50 (40 events)" in text, path


def test_s_19_confirms_at_once_are_called_concurrent_and_no_attack(
    told_by: Tell,
) -> None:
    """S-19: three within 50 ms from one client: two replays, with gaps in ms and no verdict."""
    story = ten_minutes_ago()
    call = story.call()
    nonce = story.issue(call)
    story.after(seconds=9).accept(call, nonce, outcome=None)
    for _ in range(2):
        story.after(milliseconds=20).replay(call, nonce)
    told_by(story)
    rows = read(drawn("replays")).rows[1:]
    assert len(rows) == 2
    assert all("Consistent with a retry" in row.text for row in rows)
    assert ["40 ms" in row.text for row in rows] == [True, False]
    trail = read(drawn("trail", nonce=nonce)).text
    assert "concurrent: presented while the accepted call was still in hand" in trail
    assert "+ 20 ms" in trail
    assert "attack" not in trail.lower()


def test_s_20_a_retry_after_a_lost_answer_and_one_from_elsewhere_read_differently(
    told_by: Tell,
) -> None:
    """S-20: 70 s later it is a possible lost answer; from another address it needs review."""
    story = ten_minutes_ago()
    nonces = []
    for who, moved in (
        ("ana@corp.example", {}),
        ("bo@corp.example", {"client_address": "203.0.113.9"}),
    ):
        call = story.call(who)
        nonces.append(story.issue(call))
        story.after(seconds=9).accept(call, nonces[-1])
        story.after(seconds=70).replay(call | moved, nonces[-1])
        story.after(seconds=30)
    told_by(story)
    lost, elsewhere = (read(drawn("trail", nonce=nonce)).text for nonce in nonces)
    assert "Consistent with a retry" in lost
    assert "possible lost answer: the caller may not have seen that the work was done" in lost
    assert "Needs review" in elsewhere
    assert "another client address than the accepted call" in elsewhere
    assert "possible lost answer" not in elsewhere
