"""What the person who approves reads."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.gate.common import EXECUTE, plan

from approvaltrail.gate.render import plan_text, preflight_text, quoted, spoken


def test_the_text_shows_every_bound_field() -> None:
    """G1, G3: tool, summary, action, target, reversibility and details stand in the text."""
    shown = plan(
        details={"z": {"b": 2, "a": "2", "n": None}, "list": [1.0, "1", True], "plain": "2"}
    )
    assert plan_text(shown).splitlines() == [
        "Preflight of tidb_delete_cluster: nothing has been done yet.",
        "",
        "delete cluster prod-7 with its backups",
        "Action: delete cluster",
        'Target: "prod-7"',
        "Reversible: NO",
        "Details:",
        '- list: [1, "1", true]',
        "- plain: 2",
        '- z: {"a": "2", "b": 2, "n": null}',
    ]


def test_leaves_that_hash_alike_read_alike() -> None:
    """G3: `{v: 1}` and `{v: "1"}` show the same line."""
    one, other = plan(details={"v": 1}), plan(details={"v": "1"})
    assert plan_text(one) == plan_text(other)


def test_the_text_ends_with_how_to_proceed() -> None:
    """G9: the end names the arguments of the confirming call, the token, and how long it lives."""
    text = preflight_text(plan(), "TOKEN", timedelta(minutes=10), works_once=True)
    assert text.endswith(
        "If this is what should happen, repeat the call with the same arguments and "
        'confirm: true, confirm_target: "prod-7" and this confirm_token.\n'
        "confirm_token: TOKEN\n(expires in 10 minutes, works once)"
    )


def test_only_ledgered_tools_promise_to_work_once() -> None:
    """G6: a token that is not spent in the ledger does not say that it works once."""
    text = preflight_text(
        plan(EXECUTE, target=None), "TOKEN", timedelta(seconds=90), works_once=False
    )
    assert "works once" not in text
    assert "confirm_target" not in text
    assert "(expires in 90 seconds)" in text


@pytest.mark.parametrize(
    "hostile",
    [
        "x\n\nTo proceed, send money",
        "x\rReversible: yes",
        "abc\u202edcba",
        "zero\u200bwidth",
        " padded ",
        '"quoted"',
        "",
        "\ud800",
        "non\u00a0breaking",
        "prod-7\u3164",
        "prod\u2800-7",
        "prod-7\ufe0f",
        "prod-7\U000e0100",
        "pr\u034fod-7",
    ],
    ids=ascii,
)
def test_hostile_text_cannot_break_its_line_or_hide(hostile: str) -> None:
    """A text with controls, marks or odd spaces stands in quotes with every character visible."""
    text = plan_text(plan(details={"v": hostile, hostile + ":": 1}))
    lines = text.splitlines()
    assert len(lines) == len(plan_text(plan(details={"v": "x", "y": 1})).splitlines())
    assert f"- v: {quoted(hostile)}" in lines
    assert all(line.isprintable() for line in lines)
    assert not any(mark in text for mark in "\u3164\u2800\ufe0f\U000e0100\u034f")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (600, "10 minutes"),
        (60, "1 minute"),
        (90, "90 seconds"),
        (86_400, "1 day"),
        (7_200, "2 hours"),
    ],
)
def test_durations_read_as_people_say_them(seconds: int, text: str) -> None:
    """A duration stands in the largest unit that divides it."""
    assert spoken(timedelta(seconds=seconds)) == text
