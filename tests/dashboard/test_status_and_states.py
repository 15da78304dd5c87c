"""The status line and the state lines follow fixed rules, each of which is shown here to hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.dashboard.reading import Reader

from approvaltrail.dashboard import states, status
from approvaltrail.dashboard.settings import DashboardSettings
from approvaltrail.dashboard.states import Recent
from approvaltrail.dashboard.view import Choice
from approvaltrail.schemas.events import Reason
from approvaltrail.schemas.messages import GateState, Probe
from approvaltrail.store.answers import (
    Completeness,
    CompletenessState,
    Gap,
    ProducerCondition,
    ProducerStatus,
    ReusePage,
)

NOW = datetime(2026, 3, 9, 6, 0, tzinfo=UTC)
VIEW = Choice().at(NOW)
HEALTHY = ProducerStatus(
    producer_id="01900000-0000-7000-8000-000000000001",
    service="tidb-mcp",
    instance="mcp-1",
    condition=ProducerCondition.LIVE,
    condition_reason=None,
    last_heartbeat_at=NOW - timedelta(seconds=4),
    emitted=12,
    stored=12,
    dead_lettered=0,
    in_flight=0,
    gaps=(),
    missing=0,
    lost=(),
    complete_until=NOW - timedelta(seconds=4),
    pending=0,
    journal_fill=0.0,
    gate_state=GateState.OPEN,
    gate_reason=None,
    unrecorded_refusals=0,
    ledger_probe=Probe.OK,
    ledger_probe_at=NOW,
)
COMPLETE = Completeness(
    state=CompletenessState.COMPLETE,
    complete_until=NOW - timedelta(seconds=4),
    reasons=(),
    producers_heard=3,
    producers_expected=3,
    dead_letters=0,
    asked_at=NOW,
    producers=(HEALTHY,),
)
NOTHING = ReusePage(reuses=(), total=0, tokens=0, claimed=0)


def line(**changed: object) -> tuple[str, str]:
    read = Reader(status.line(replace(COMPLETE, **changed), VIEW))
    tone = next(value for name, value in read.attributes if name == "class")
    return tone or "", read.text


def test_a_complete_store_says_up_to_when_and_for_whom() -> None:
    """Green, with words: never more than is known."""
    tone, words = line()
    assert tone == "at-status at-good"
    assert words == (
        "✔\ufe0eComplete up to 2026-03-09 05:59:56.000 UTC (4 s ago) for the 3 producers heard "
        "from (3 expected) · 0 dead letters"
    )


LESS = {
    "Incomplete: producer 01a2 lacks 118–120": (
        {"state": CompletenessState.INCOMPLETE, "reasons": ("producer 01a2 lacks 118–120",)},
        "at-bad",
    ),
    "and 2 more reasons": (
        {"state": CompletenessState.INCOMPLETE, "reasons": ("a", "b", "c")},
        "at-bad",
    ),
    "Not yet complete: in flight": (
        {"state": CompletenessState.NOT_YET, "reasons": ("in flight",)},
        "at-warn",
    ),
    "Complete with reservations: up to": ({"producers_heard": 2}, "at-warn"),
    "2 dead letters": ({"dead_letters": 2}, "at-warn"),
    "Nothing recorded yet": ({"state": CompletenessState.NOTHING_RECORDED}, "at-unknown"),
}


@pytest.mark.parametrize("words", LESS)
def test_the_status_line_goes_amber_with_its_reason(words: str) -> None:
    """Anything short of complete changes colour, icon and words."""
    changed, tone = LESS[words]
    seen, said = line(**changed)
    assert words in said
    assert seen.endswith(tone)


def said(settings: dict | None = None, **changed: object) -> list[str]:
    recent = Recent(**{"completeness": COMPLETE, "reuses": NOTHING, "refusals": {}, "now": NOW}
                    | changed)  # fmt: skip
    read = DashboardSettings(
        clickhouse_dsn="chdb:///nowhere", **settings or {"stale_seconds": 120, "recent_minutes": 15}
    )
    return [one.text for one in states.active_states(recent, read)]


def with_producer(**changed: object) -> Completeness:
    return replace(COMPLETE, producers=(replace(HEALTHY, **changed), HEALTHY))


def test_quiet_is_said_when_no_rule_holds() -> None:
    """One line, and it names the time it speaks of."""
    assert said() == ["Quiet: no token was used again in the last 15 min."]


RULES = {
    "Gate closed on 1 of 2 servers: journal full.": {
        "completeness": with_producer(gate_state=GateState.CLOSED, gate_reason="journal full")
    },
    "Pipeline stale: 1 producer silent": {
        "completeness": with_producer(condition=ProducerCondition.SILENT)
    },
    "Pipeline stale: what is stored lies 2 min 1 s behind.": {
        "completeness": replace(COMPLETE, complete_until=NOW - timedelta(seconds=121))
    },
    "Incomplete: producer lacks 1": {
        "completeness": replace(
            COMPLETE, state=CompletenessState.INCOMPLETE, reasons=("producer lacks 1",)
        )
    },
    "Ledger failing on 1 of 2 servers": {"completeness": with_producer(ledger_probe=Probe.FAILING)},
    "Boundary under test: 14 reuses of 3 tokens in the last 15 min; none accepted": {
        "reuses": replace(NOTHING, total=14, tokens=3)
    },
    "Boundary under test: 10 forged or misdirected tokens": {
        "refusals": {Reason.BAD_SIGNATURE: 7, Reason.WRONG_TENANT: 3}
    },
}


@pytest.mark.parametrize("words", RULES)
def test_each_state_has_its_rule(words: str) -> None:
    """A rule that holds gives its line, and quiet is not said beside it."""
    lines = said(**RULES[words])
    assert len(lines) == 1
    assert lines[0].startswith(words)


def test_all_states_that_hold_are_said_the_worst_first() -> None:
    """An incomplete pipeline never hides an attack."""
    bad = replace(
        with_producer(
            gate_state=GateState.CLOSED, ledger_probe=Probe.FAILING, gaps=(Gap(1, 1),), missing=1
        ),
        state=CompletenessState.INCOMPLETE,
        complete_until=NOW - timedelta(hours=1),
    )
    lines = said(completeness=bad, reuses=replace(NOTHING, total=1, tokens=1))
    starts = ["Gate closed", "Pipeline stale", "Incomplete", "Ledger failing", "Boundary under"]
    assert [one[: len(start)] for one, start in zip(lines, starts, strict=True)] == starts


def test_producers_that_are_gone_in_order_close_no_gate() -> None:
    """What a closed or retired producer said last is no state of now."""
    gone = replace(
        COMPLETE,
        complete_until=NOW - timedelta(days=3),
        producers=(
            replace(HEALTHY, condition=ProducerCondition.CLOSED, gate_state=GateState.CLOSED),
            replace(HEALTHY, condition=ProducerCondition.RETIRED, ledger_probe=Probe.FAILING),
        ),
    )
    assert said(completeness=gone) == ["Quiet: no token was used again in the last 15 min."]
