"""The preflight's text: what the person who approves reads.

Numbers stand as they hash. A detail stands as `- name: value`; nested values stand as JSON, with
their types, keys in the order in which they hash. A text that could break its line, hide itself or
pass for another (controls, directional marks, odd spaces, a leading quote) stands in JSON quotes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from approvaltrail.gate.leaves import leaf_text
from approvaltrail.gate.plan import Plan
from approvaltrail.gate.values import Value

_KEY_BREAKERS: Final = ":"
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def preflight_text(plan: Plan, token: str, lifetime: timedelta, *, works_once: bool) -> str:
    """Return the whole preflight: the plan, and how to proceed."""
    return f"{plan_text(plan)}\n\n{_how_to_proceed(plan, token, lifetime, works_once)}"


def plan_text(plan: Plan) -> str:
    """Return the plan as it is shown; nothing in it depends on the moment."""
    lines = [
        f"Preflight of {shown(plan.tool)}: nothing has been done yet.",
        "",
        shown(plan.summary),
        f"Action: {shown(plan.action)}",
        f"Target: {'(none)' if plan.target is None else quoted(plan.target)}",
        f"Reversible: {'yes' if plan.reversible else 'NO'}",
    ]
    if plan.details:
        lines.append("Details:")
        lines += [f"- {_shown_key(key)}: {_detail(item)}" for key, item in plan.details.items()]
    return "\n".join(lines)


def _how_to_proceed(plan: Plan, token: str, lifetime: timedelta, works_once: bool) -> str:  # noqa: FBT001 - private, named at its one call
    target = "" if plan.target is None else f", confirm_target: {quoted(plan.target)}"
    once = ", works once" if works_once else ""
    return (
        "If this is what should happen, repeat the call with the same arguments and "
        f"confirm: true{target} and this confirm_token.\n"
        f"confirm_token: {token}\n"
        f"(expires in {spoken(lifetime)}{once})"
    )


def spoken(duration: timedelta) -> str:
    """Return a duration in its largest fitting unit: `10 minutes`."""
    seconds = max(1, int(duration.total_seconds()))
    for size, unit in _UNITS:
        if seconds >= size and seconds % size == 0:
            count = seconds // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{seconds} seconds"


def shown(text: str) -> str:
    """Return the text as it is, or in quotes where it would not read as what it is."""
    plain = text and text.isprintable() and text == text.strip() and not text.startswith('"')
    return text if plain else quoted(text)


def quoted(text: str) -> str:
    """Return the text as a JSON string in which every character is visible."""
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1]
        for character in json.dumps(text, ensure_ascii=False)
    )


def _shown_key(key: str) -> str:
    return quoted(key) if any(mark in key for mark in _KEY_BREAKERS) else shown(key)


def _detail(value: Value) -> str:
    if isinstance(value, Mapping | tuple):
        return json_text(value)
    return shown(leaf_text(value))


def json_text(value: Value) -> str:
    """Return a nested value as JSON, its numbers in the notation in which they hash."""
    if isinstance(value, Mapping):
        pairs = (f"{quoted(key)}: {json_text(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return quoted(value) if isinstance(value, str) else leaf_text(value)
