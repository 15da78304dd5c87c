"""Text from tools is text: escaped, made visible, and never able to leave its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.hostile import HOSTILE
from tests.dashboard.reading import Reader

from approvaltrail.dashboard import text
from approvaltrail.dashboard.markup import Markup, element, joined, long_value, visible


@pytest.mark.parametrize("hostile", HOSTILE)
def test_d_05_to_d_08_hostile_text_stays_text(hostile: str) -> None:
    """D-05…D-08: formulas, colours, links, images and elements are shown to the character."""
    read = Reader(element("td", hostile, title=hostile))
    assert read.elements == ["td"]
    assert read.attributes == [("title", visible(hostile))]
    assert read.text == visible(hostile)


@given(st.text(max_size=200))
def test_any_text_at_all_stays_text(anything: str) -> None:
    """Whatever a caller sends, one element is made and its text is what was sent."""
    read = Reader(element("p", anything, title=anything))
    assert read.elements == ["p"]
    assert read.text == visible(anything)
    assert read.attributes == [("title", visible(anything))]


@given(st.text(min_size=1, max_size=90))
def test_a_shortened_value_keeps_the_whole(anything: str) -> None:
    """The whole stands in the page, so that copying gives it."""
    read = Reader(long_value(anything))
    assert read.text == visible(anything)
    assert ("title", visible(anything)) in read.attributes


def test_reordering_marks_and_controls_are_made_visible() -> None:
    """No target can dress as another by marks that reorder or hide what stands around them."""
    assert visible("prod\u202e7-dorp") == "prod⟨U+202E⟩7-dorp"
    assert visible("a\u200bb\x00c\n") == "a⟨U+200B⟩b⟨U+0000⟩c\n"


@pytest.mark.parametrize(
    "href",
    ["javascript:alert(1)", "//evil.example", "https://evil.example", "trail?a=<b>", "../x", "a:b"],
)
def test_a_link_leads_to_our_pages_alone(href: str) -> None:
    """No element can be built that leads elsewhere."""
    with pytest.raises(ValueError, match="page of the dashboard"):
        element("a", "here", href=href)


@pytest.mark.parametrize("name", ["script", "img", "iframe", "style", "form", "svg"])
def test_elements_that_pages_do_not_need_cannot_be_built(name: str) -> None:
    """The builder has a list, and nothing that runs or fetches is on it."""
    with pytest.raises(ValueError, match="not among"):
        element(name)


def test_attributes_that_pages_do_not_need_cannot_be_built() -> None:
    """No handlers."""
    with pytest.raises(ValueError, match="not among"):
        element("p", onclick="alert(1)")


def test_plain_text_is_refused_where_markup_is_shown() -> None:
    """`show` takes what `element` built and nothing else."""
    with pytest.raises(TypeError, match="plain"):
        text.show("<b>hello</b>")  # type: ignore[arg-type]


def test_joining_escapes_what_is_plain() -> None:
    """Markup stays, text is escaped, nothing is left out."""
    assert joined("<", element("span", "&"), None) == Markup("&lt;<span>&amp;</span>")
