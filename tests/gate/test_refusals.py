"""Refusals are distinct, because the next move differs."""

from __future__ import annotations

from pathlib import Path

import pytest

import approvaltrail.gate
from approvaltrail.gate import REFUSALS, NextMove
from approvaltrail.gate.refusals import refusal
from approvaltrail.schemas import Reason


def test_every_reason_has_its_own_refusal() -> None:
    """G9: the table is complete, and no two refusals share a text."""
    assert set(REFUSALS) == set(Reason)
    assert all(REFUSALS[reason].code is reason for reason in Reason)
    assert len({row.text for row in REFUSALS.values()}) == len(Reason)


@pytest.mark.parametrize("reason", Reason)
def test_no_refusal_executed_anything(reason: Reason) -> None:
    """X3: a refusal always says that nothing was executed, in its structured form too."""
    made = refusal(reason, event_id="e")
    assert made.structured()["nothing_executed"] is True
    assert made.structured()["code"] == reason.value


@pytest.mark.parametrize(
    ("reason", "move", "retry", "words"),
    [
        (Reason.MISSING_TOKEN, NextMove.RUN_PREFLIGHT, False, "no preflight"),
        (Reason.EXPIRED, NextMove.CHECK_THEN_PREFLIGHT, False, "may already be done"),
        (Reason.ALREADY_USED, NextMove.CHECK_THEN_PREFLIGHT, False, "may already be done"),
        (Reason.PLAN_CHANGED, NextMove.READ_NEW_PREFLIGHT, False, "Do not retry"),
        (Reason.LEDGER_UNAVAILABLE, NextMove.RETRY_SHORTLY, True, "Nothing was executed"),
        (Reason.NOT_RECORDED, NextMove.RETRY_SHORTLY, True, "Nothing was executed"),
        (Reason.WRONG_TENANT, NextMove.STOP, False, "cannot succeed"),
        (Reason.WRONG_TOOL, NextMove.STOP, False, "cannot succeed"),
    ],
)
def test_the_next_move_is_right(reason: Reason, move: NextMove, *, retry: bool, words: str) -> None:
    """G9: each refusal names the move that helps."""
    row = REFUSALS[reason]
    assert (row.next_move, row.retry_safe) == (move, retry)
    assert words in row.text


def test_a_changed_plan_is_not_called_a_changed_target() -> None:
    """G9: what changed may be anything that the hash covers."""
    assert "target" not in REFUSALS[Reason.PLAN_CHANGED].text


@pytest.mark.parametrize("reason", [Reason.NOT_RECORDED, Reason.LEDGER_UNAVAILABLE])
def test_a_token_spent_by_this_call_is_not_to_be_retried(reason: Reason) -> None:
    """X3: once the claim stands, a retry is no longer safe, and the text says why."""
    spent = refusal(reason, spent_now=True)
    assert (spent.retry_safe, spent.token_spent) == (False, True)
    assert spent.next_move is NextMove.RUN_PREFLIGHT
    assert "spent" in spent.text
    assert "retry" not in spent.text


def test_the_readme_lists_every_code() -> None:
    """The page of the gate names every code that a caller may meet."""
    gate_folder = Path(str(approvaltrail.gate.__file__)).parents[3]
    text = (gate_folder / "README.md").read_text("utf-8")
    assert all(f"`{reason.value}`" in text for reason in Reason)
