"""The preflight's text: what the person who approves reads.

Numbers stand as they hash. A detail stands as `- name: value`; nested values stand as JSON, with
their types, keys in the order in which they hash. A text that could break its line, hide itself or
pass for another (controls, directional marks, odd spaces, a leading quote) stands in JSON quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from approvaltrail.gate.arguments import DEFAULT_ARGUMENTS, ConfirmArguments
from approvaltrail.gate.leaves import leaf_text
from approvaltrail.gate.plan import Plan
from approvaltrail.gate.values import Value

_KEY_BREAKERS: Final = ":"
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters, marks and symbols that show nothing, and that Python calls printable all the same:
Unicode's default ignorable code points, and the blank Braille pattern."""
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def preflight_text(
    plan: Plan,
    token: str,
    lifetime: timedelta,
    *,
    works_once: bool,
    arguments: ConfirmArguments = DEFAULT_ARGUMENTS,
) -> str:
    """Return the whole preflight: the plan, and how to proceed."""
    end = _how_to_proceed(plan, token, lifetime, arguments, works_once=works_once)
    return f"{plan_text(plan)}\n\n{end}"


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


def _how_to_proceed(
    plan: Plan, token: str, lifetime: timedelta, arguments: ConfirmArguments, *, works_once: bool
) -> str:
    target = "" if plan.target is None else f", {arguments.target}: {quoted(plan.target)}"
    once = ", works once" if works_once else ""
    return (
        "If this is what should happen, repeat the call with the same arguments and "
        f"{arguments.confirm}: true{target} and this {arguments.token}.\n"
        f"{arguments.token}: {token}\n"
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
    plain = text and _visible(text) and text == text.strip() and not text.startswith('"')
    return text if plain else quoted(text)


def _visible(text: str) -> bool:
    return text.isprintable() and _INVISIBLE.search(text) is None


def quoted(text: str) -> str:
    """Return the text as a JSON string in which every character is visible."""
    return "".join(
        character if _visible(character) else json.dumps(character)[1:-1]
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
