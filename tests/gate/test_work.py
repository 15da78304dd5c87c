"""How accepted work ends, and what its end leaves behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.gate.common import DELETE, DyingLog, plan, shared_gate

from approvaltrail.gate import (
    Confirmed,
    MemoryLedger,
    NotRecordedError,
    OutcomeUnknownError,
    Plan,
    PlanError,
    Refusal,
)
from approvaltrail.gate.errors import LedgerNotReadyError
from approvaltrail.gate.testing import EventLog, GateUnderTest, ManualClock
from approvaltrail.schemas import Outcome


async def test_work_that_fails_leaves_its_token_spent(gate: GateUnderTest) -> None:
    """S-16, X2: the acceptance is followed by the failure; the error comes through."""

    def fail(_: Plan) -> None:
        raise ConnectionError("secret detail")

    token = await gate.preflight(DELETE, cluster="prod-7")
    with pytest.raises(ConnectionError):
        await gate.confirm(token, execute=fail)
    accepted, completed = list(gate.events)[1:]
    assert (completed.outcome, completed.acceptance_id) == (Outcome.FAILED, accepted.event_id)
    assert completed.attributes == (("detail", "ConnectionError"),)
    assert (await gate.confirm(token)).code == "already_used"


async def test_work_that_is_cancelled_has_an_unknown_outcome(gate: GateUnderTest) -> None:
    """X2: when the work is cancelled under way, nobody knows what it did."""
    started = asyncio.Event()

    async def hang(_: Plan) -> None:
        started.set()
        await asyncio.Event().wait()

    token = await gate.preflight(DELETE, cluster="prod-7")
    running = asyncio.create_task(gate.confirm(token, execute=hang))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert gate.events[-1].outcome is Outcome.UNKNOWN
    assert (await gate.confirm(token)).code == "already_used"


class SlowLog(EventLog):
    """Holds the recording of acceptances until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.release = asyncio.Event(), asyncio.Event()

    async def record(self, event: Any) -> Any:
        """Wait, then record."""
        if event.event_type == "accepted":
            self.reached.set()
            await self.release.wait()
        return await super().record(event)


async def test_a_cancellation_between_claim_and_execution_leaves_its_events() -> None:
    """X2: cancelled after the claim, nothing runs, and the events say so."""
    clock, events, ran = ManualClock(), SlowLog(), []
    gate = shared_gate(events, MemoryLedger(clock=clock), clock, confirm_secret=None)
    issued = await gate.preflight(DELETE, plan())
    running = asyncio.create_task(gate.confirm(DELETE, plan(), issued.token, ran.append))
    await events.reached.wait()
    running.cancel()
    events.release.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert events.types == ["issued", "accepted", "completed"]
    assert (events[-1].outcome, ran) == (Outcome.FAILED, [])


async def test_work_whose_end_cannot_be_recorded_is_still_done(clock: ManualClock) -> None:
    """X2: the result comes back, and says that its end was not recorded."""
    events = DyingLog()
    events.fails_at = "completed"
    gate = shared_gate(events, MemoryLedger(clock=clock), clock, confirm_secret=None)
    issued = await gate.preflight(DELETE, plan())
    done = await gate.confirm(DELETE, plan(), issued.token, lambda _: "deleted")
    assert isinstance(done, Confirmed)
    assert (done.result, done.completion_recorded) == ("deleted", False)
    assert events.types == ["issued", "accepted"]


def test_a_thread_confirms_without_an_event_loop(clock: ManualClock) -> None:
    """The synchronous calls follow the very same order."""
    events = EventLog()
    gate = shared_gate(events, MemoryLedger(clock=clock), clock, confirm_secret=None)
    issued = gate.preflight_sync(DELETE, plan)
    done = gate.confirm_sync(DELETE, plan, issued.token, lambda done: done.target)
    assert isinstance(done, Confirmed)
    assert done.result == "prod-7"
    assert gate.confirm_sync(DELETE, plan, issued.token, print).code == "already_used"

    async def asynchronous(_: Plan) -> None:
        pytest.fail("was run")

    again = gate.preflight_sync(DELETE, plan)
    with pytest.raises(PlanError):
        gate.confirm_sync(DELETE, plan, again.token, asynchronous)
    assert events.types == [
        "issued", "accepted", "completed", "replayed", "issued", "accepted", "completed",
    ]  # fmt: skip
    assert events[-1].outcome is Outcome.FAILED


class OddEnd(BaseException):
    """No `Exception`, and none of asyncio's or Python's own."""


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (OddEnd(), "interrupted"),
        (BaseExceptionGroup("several", [asyncio.CancelledError()]), "interrupted"),
        (SystemExit(1), "interrupted"),
        (OutcomeUnknownError("lost"), "OutcomeUnknownError"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_work_that_was_cut_off_has_an_unknown_outcome(
    clock: ManualClock, error: BaseException, detail: str
) -> None:
    """X2: whatever cuts work off comes through, is recorded as unknown, and spends the token."""
    events = EventLog()
    gate = shared_gate(events, MemoryLedger(clock=clock), clock, confirm_secret=None)
    issued = gate.preflight_sync(DELETE, plan)

    def cut_off(_: Plan) -> None:
        raise error

    with pytest.raises(type(error)):
        gate.confirm_sync(DELETE, plan, issued.token, cut_off)
    assert events[-1].outcome is Outcome.UNKNOWN
    assert events[-1].attributes == (("detail", detail),)
    assert gate.confirm_sync(DELETE, plan, issued.token, cut_off).code == "already_used"


async def test_work_that_the_loop_lets_go_of_has_an_unknown_outcome(clock: ManualClock) -> None:
    """X2: a confirm that is closed while it waits for the work leaves its end on record."""
    events = EventLog()
    gate = shared_gate(events, MemoryLedger(clock=clock), clock, confirm_secret=None)
    issued = await gate.preflight(DELETE, plan())
    started = asyncio.Event()

    async def hang(_: Plan) -> None:
        started.set()
        await asyncio.Event().wait()

    confirming = gate.confirm(DELETE, plan(), issued.token, hang)
    waited_for: Any = None
    while not started.is_set():
        if waited_for is not None:
            waited_for._asyncio_future_blocking = False
            await asyncio.wait([waited_for])
        waited_for = confirming.send(None)
    confirming.close()
    assert (events.types[-1], events[-1].outcome) == ("completed", Outcome.UNKNOWN)


class BrokenLog(EventLog):
    """Fails as no recorder should, at one type of event or when it is asked to count."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self.at = at

    def record_sync(self, event: Any) -> Any:
        """Record, or break."""
        if event.event_type == self.at:
            raise OSError("at1.secret")
        return super().record_sync(event)

    def count_unrecorded(self, event: Any) -> None:
        """Break after counting."""
        super().count_unrecorded(event)
        raise ZeroDivisionError

    def report_scrubbed(self, values: int) -> None:
        """Break after counting."""
        super().report_scrubbed(values)
        raise ZeroDivisionError


@pytest.mark.parametrize("at", ["issued", "accepted", "completed", "refused"])
async def test_a_recorder_that_breaks_closes_the_gate(clock: ManualClock, at: str) -> None:
    """X3: any error of a recorder counts as not recorded: no token, no work, no lost result."""
    events, ran = BrokenLog(at), []
    gate = shared_gate(events, MemoryLedger(clock=clock), clock, confirm_secret=None)
    if at == "issued":
        with pytest.raises(NotRecordedError):
            await gate.preflight(DELETE, plan())
        return
    issued = await gate.preflight(DELETE, plan())
    token = "at1.forged.token" if at == "refused" else issued.token
    answer = await gate.confirm(DELETE, plan(), token, ran.append)
    if at == "completed":
        assert isinstance(answer, Confirmed)
        assert (answer.completion_recorded, len(ran)) == (False, 1)
        return
    assert isinstance(answer, Refusal)
    assert (answer.recorded, ran) == (False, [])
    assert (answer.code == "not_recorded") is (at == "accepted")
    assert len(events.unrecorded) == 1


class BrokenLedger(MemoryLedger):
    """Cannot be opened, and says so in no way that a ledger should."""

    def prepare(self) -> None:
        """Break."""
        raise ZeroDivisionError


async def test_a_ledger_that_breaks_issues_nothing(clock: ManualClock) -> None:
    """G7: whatever a ledger raises before an issuance refuses it."""
    events = EventLog()
    gate = shared_gate(events, BrokenLedger(clock=clock), clock, confirm_secret=None)
    with pytest.raises(LedgerNotReadyError):
        await gate.preflight(DELETE, plan())
    assert events.types == []


def test_an_interrupted_thread_has_an_unknown_outcome(clock: ManualClock) -> None:
    """X2: Ctrl-C during the work leaves an unknown outcome."""
    events = EventLog()
    gate = shared_gate(events, MemoryLedger(clock=clock), clock, confirm_secret=None)
    issued = gate.preflight_sync(DELETE, plan)

    def interrupted(_: Plan) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gate.confirm_sync(DELETE, plan, issued.token, interrupted)
    assert events[-1].outcome is Outcome.UNKNOWN
