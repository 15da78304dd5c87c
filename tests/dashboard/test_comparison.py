"""What differs between the calls of a trail: side by side, and no column that says nothing new."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.dashboard.reading import Reader
from tests.dashboard.test_labels import a_retry

from approvaltrail.dashboard import comparison
from approvaltrail.schemas.events import NonceTrust
from approvaltrail.store.answers import Trail


def trail_of(*sessions: str, total: int | None = None, first: int = 1) -> Trail:
    """Return a trail whose reuses came from these sessions, a second apart."""
    base = a_retry()
    reuses = []
    for number, session in enumerate(sessions, first):
        event = base.presentation.event
        later = event.occurred_at + timedelta(seconds=number)
        changed = event.model_copy(
            update={"session_id": session, "occurred_at": later, "request_id": f"r-{number}"}
        )
        presentation = replace(base.presentation, event=changed)
        reuses.append(replace(base, presentation=presentation, number=number))
    return Trail(
        nonce=str(base.presentation.event.nonce),
        trust=NonceTrust.VERIFIED,
        issuance=base.issuance,
        acceptance=base.acceptance,
        completions=(),
        early_refusals=(),
        reuses=tuple(reuses),
        reuses_total=total or len(reuses),
        claimed=(),
        claimed_total=0,
        withheld=0,
    )


@pytest.mark.parametrize(
    ("sessions", "columns"),
    [
        ("aaaaa", ["Reuse 1–5"]),
        ("aabba", ["Reuse 1–2", "Reuse 3–4", "Reuse 5"]),
        ("ababababab", ["Reuse 1", "Reuse 2", "Reuse 3", "Reuse 4", "Reuse 5"]),
    ],
)
def test_reuses_that_differ_in_nothing_share_a_column(sessions: str, columns: list[str]) -> None:
    """A column for each run of like reuses, five at most, and the number of those left out."""
    table = Reader(str(comparison.build(trail_of(*sessions), show_all=False)))
    head = "".join(columns)
    assert f"FieldIssuedAccepted{head}Trust" in table.text
    shown = sum(int(one.rpartition("–")[2].split()[-1]) for one in columns[-1:])
    left = len(sessions) - shown
    assert (f"{left} further reuse" in table.text) is (left > 0)


def test_reuses_with_a_hole_between_are_not_drawn_as_one() -> None:
    """Where only the first and the last are known, nothing is said of those in between."""
    found = trail_of("a", "a", total=300)
    last = replace(found.reuses[1], number=300)
    table = Reader(
        str(comparison.build(replace(found, reuses=(found.reuses[0], last)), show_all=False))
    )
    assert "Reuse 1Reuse 300" in table.text
    assert "298 further reuses" in table.text
