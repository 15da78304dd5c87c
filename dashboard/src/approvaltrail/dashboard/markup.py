"""HTML that cannot be broken out of: every text is escaped unless it was built here.

The pages show text that attackers chose: targets, principals, plan summaries. It must stay text, to
the character, in every place. So pages never write HTML: they nest `element` calls, and every plain
`str` given to one is escaped. A Markdown renderer never sees it.
"""

from __future__ import annotations

import re
from typing import Final

from markupsafe import Markup, escape

from approvaltrail.dashboard import formats

__all__ = ["NAME", "Child", "Markup", "element", "joined", "long_value", "visible"]

Child = str | Markup | None
"""Plain text (escaped), markup built here, or nothing."""

NAME: Final = (16, 10)
"""How much of a name is shown that people read rather than compare."""

_ELEMENTS: Final = frozenset(
    {"a", "bdi", "caption", "dd", "div", "dl", "dt", "h1", "h2", "h3", "li", "ol", "p", "span"}
    | {"details", "strong", "summary", "table", "tbody", "td", "th", "thead", "time", "tr", "ul"}
)
_ATTRIBUTES: Final = frozenset(
    {"class", "title", "href", "style", "datetime", "data-label", "role", "aria-label", "scope"}
    | {"aria-hidden", "aria-labelledby", "id", "tabindex"}
)
_OWN_LINK: Final = re.compile(r"^(?:[a-z]+|\./)(?:\?[A-Za-z0-9_.~%&=+-]*)?$|^#[a-z0-9-]+$")
"""A page of ours with query parameters, or a place on this page: never another origin."""

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
"""Controls and marks that change how the text around them looks, or that nobody can see."""


def element(name: str, *children: Child, **attributes: str | None) -> Markup:
    """Build one element. `class_` and `data_label` stand for `class` and `data-label`.

    Raises:
        ValueError: an element, attribute or link that pages have no need for.
    """
    if name not in _ELEMENTS:
        raise ValueError(f"<{name}> is not among the elements that pages use")
    opened = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    # Both halves are literals of ours and escaped attributes.
    start, end = Markup(opened), Markup(f"</{name}>")  # noqa: S704
    return start + joined(*children) + end


def joined(*children: Child) -> Markup:
    """Put pieces one after another, escaping what is plain text."""
    return Markup("").join(_piece(child) for child in children if child is not None)


def visible(text: str) -> str:
    """Make controls and reordering marks visible, so that no text can dress as another."""
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def long_value(
    text: str | None, *, keep: tuple[int, int] = (6, 4), class_: str = "", href: str | None = None
) -> Markup:
    """Show an identifier in monospace, cut in the middle; the whole is selected and on hover.

    `keep` is how many characters of its head and tail are shown. The hidden middle stays in the
    page with no width, so that copying gives the whole value.
    """
    if text is None:
        return element("span", "—", class_="at-unknown", title="not recorded")
    head, middle, tail = formats.cut(text, *keep)
    hidden = element("span", middle, class_="at-middle") if middle else None
    inside = element("bdi", head, hidden, tail)
    classes = f"at-mono {class_}".strip()
    if href is None:
        return element("span", inside, class_=f"{classes} at-whole", title=text)
    return element("a", inside, class_=classes, title=text, href=href)


def _piece(child: str | Markup) -> Markup:
    return child if isinstance(child, Markup) else escape(visible(child))


def _attribute(key: str, value: str | None) -> str:
    if value is None:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if name not in _ATTRIBUTES:
        raise ValueError(f"{name} is not among the attributes that pages use")
    if name == "href" and not _OWN_LINK.match(value):
        raise ValueError("a link must lead to a page of the dashboard")
    return f' {name}="{escape(visible(value))}"'
