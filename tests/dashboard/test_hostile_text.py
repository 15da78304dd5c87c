"""D-05…D-08 through the real store: every caller-controlled field, on every page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.dashboard.hostile import FIELDS, hostile_texts
from tests.dashboard.reading import Reader
from tests.support.story import Story

from approvaltrail.dashboard.app import PAGES
from approvaltrail.dashboard.markup import visible
from approvaltrail.dashboard.testing import drawn, markup_of

SHOWN_IN_LISTS = ("tool", "target", "principal")
OURS = frozenset(
    "a bdi caption div h1 h2 h3 li ol p span strong table tbody td th thead time tr ul".split()  # noqa: SIM905 - a list of names reads better in a line
)


@pytest.mark.parametrize("path", [path for path in PAGES if path != "trail"])
def test_hostile_text_stays_text_on_every_page(
    hostile_story: tuple[str, Story, list[str]], looking_at: Callable[[str], None], path: str
) -> None:
    """Each text is shown to the character, and no page has an element that is not ours."""
    looking_at(hostile_story[0])
    query = {"type": "replayed"} if path == "events" else {}
    app = drawn(path, range="1h", **query)
    assert [one.message for one in app.exception] == []
    page = Reader(markup_of(app))
    assert set(page.elements) <= OURS
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert not any(":" in link or link.startswith("/") for link in page.links)
    if path in {"replays", "events"}:
        for name, text in zip(FIELDS, hostile_texts(0), strict=True):
            assert name not in SHOWN_IN_LISTS or visible(text) in page.text, text


@pytest.mark.parametrize("index", range(3))
def test_hostile_text_stays_text_in_its_trail(
    hostile_story: tuple[str, Story, list[str]], looking_at: Callable[[str], None], index: int
) -> None:
    """Titles, sentences, timeline, comparison and neighbours show it to the character."""
    reader, _, nonces = hostile_story
    looking_at(reader)
    app = drawn("trail", nonce=nonces[index], all="true")
    assert [one.message for one in app.exception] == []
    page = Reader(markup_of(app))
    assert set(page.elements) <= OURS
    for text in hostile_texts(index):
        assert visible(text) in page.text, text
