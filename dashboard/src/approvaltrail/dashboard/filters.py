"""Filters that live in the URL, and the chips that say which are in force and take each away.

A saved search is its URL: every filter is a query parameter, bound to its widget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeVar

import streamlit as st

from approvaltrail.dashboard import text
from approvaltrail.dashboard.desk import Desk
from approvaltrail.dashboard.markup import element

_ANY = "any"
_ADDRESS_CHARACTERS = 64
Kind = TypeVar("Kind", bound=StrEnum)
Kept = Mapping[str, str | None]
"""Filters in force, by their names in the URL."""


def text_field(label: str, key: str, maximum: int = 512) -> str | None:
    """Draw a box; what is typed has to be met exactly, unless the label says otherwise."""
    given = st.text_input(
        label, key=key, bind="query-params", placeholder="all", max_chars=maximum, width=170
    )
    return (given or "").strip() or None


def address_field(desk: Desk) -> str | None:
    """Draw the box for an address, for a role that may see one.

    Another role's is taken from the URL all the same, so that the query is refused with the reason.
    """
    if desk.viewer.sees_addresses:
        return text_field("Address", "address", _ADDRESS_CHARACTERS)
    return st.query_params.get("address")


def choice_field(label: str, key: str, kinds: Iterable[Kind]) -> Kind | None:
    """Draw a choice of one of several kinds, or any."""
    by_value = {kind.value: kind for kind in kinds}
    given = st.selectbox(label, [_ANY, *by_value], key=key, bind="query-params", width=170)
    return by_value.get(given or _ANY)


def chips(desk: Desk, page: str, names: Mapping[str, str], kept: Kept) -> None:
    """Show the filters in force; each chip is a link to the same page without it.

    `names` says how a parameter is called on the page, where that is not its own name.
    """
    active = {key: value for key, value in kept.items() if value}
    if not active:
        return
    items = []
    for key, value in active.items():
        rest = {other: one for other, one in active.items() if other != key}
        name = names.get(key, key)
        items.append(
            element(
                "a",
                element("span", f"{name} ", class_="at-chip-name"),
                element("bdi", value, class_="at-chip-value"),
                element("span", " ✕", aria_hidden="true"),
                href=desk.view.href(page, **rest),
                class_="at-chip",
                aria_label=f"Remove the filter {name}: {value}",
                title=f"{name}: {value}",
            )
        )
    if len(active) > 1:
        clear = element("a", "Clear all", href=desk.view.href(page), class_="at-clear")
        items.append(clear)
    text.show(element("div", *items, class_="at-chips"))
