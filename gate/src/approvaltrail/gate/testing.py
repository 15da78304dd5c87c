"""For the tests of servers that embed the gate: a clock, an event log, a gate with both.

No broker, no disk, no sleep. The pytest fixture is in `approvaltrail.gate.pytest_plugin`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from approvaltrail.gate.attempt import Confirmed
from approvaltrail.gate.caller import Caller
from approvaltrail.gate.gate import Gate
from approvaltrail.gate.leaves import leaf_text
from approvaltrail.gate.ledger import Ledger, MemoryLedger
from approvaltrail.gate.plan import Plan
from approvaltrail.gate.refusals import Refusal
from approvaltrail.gate.settings import GateSettings
from approvaltrail.gate.tools import TOOLS, tool_named
from approvaltrail.schemas import (
    AddressSource,
    ApprovalEvent,
    Recorded,
    RecorderUnavailableError,
)


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)) -> None:
        self._now = start

    def now(self) -> datetime:
        """Return the instant to which the clock was moved."""
        return self._now

    def advance(self, **duration: float) -> None:
        """Move the clock, by the arguments of `timedelta`: `advance(seconds=40)`."""
        self._now += timedelta(**duration)


class EventLog:
    """An `EventRecorder` in memory. `unavailable` makes it refuse, as a full journal does."""

    def __init__(self) -> None:
        self.recorded: list[ApprovalEvent] = []
        self.unrecorded: list[ApprovalEvent] = []
        self.scrubbed_values = 0
        self.unavailable = False
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[ApprovalEvent]:
        return iter(tuple(self.recorded))

    def __len__(self) -> int:
        return len(self.recorded)

    def __getitem__(self, index: int) -> ApprovalEvent:
        return self.recorded[index]

    @property
    def types(self) -> list[str]:
        """The events' types, in order."""
        return [event.event_type.value for event in self.recorded]

    async def record(self, event: ApprovalEvent) -> Recorded:
        """Record one event."""
        return self.record_sync(event)

    def record_sync(self, event: ApprovalEvent) -> Recorded:
        """Record one event."""
        self.check()
        with self._lock:
            self.recorded.append(event)
            sequence = len(self.recorded)
        return Recorded(
            producer_id="00000000-0000-7000-8000-000000000000",
            sequence=sequence,
            recorded_at=event.occurred_at,
        )

    def check(self) -> None:
        """Refuse where `unavailable` is set."""
        if self.unavailable:
            raise RecorderUnavailableError("the event log was made unavailable by its test")

    def count_unrecorded(self, event: ApprovalEvent) -> None:
        """Keep a refusal that could not be recorded."""
        with self._lock:
            self.unrecorded.append(event)

    def report_scrubbed(self, values: int) -> None:
        """Count values from which a token was removed."""
        with self._lock:
            self.scrubbed_values += values


class GateUnderTest:
    """A gate whose plans are made from a call's own arguments, for short tests.

    `preflight` remembers what it issued, so that `confirm(token)` repeats the same call.
    """

    def __init__(self, settings: GateSettings | None = None, ledger: Ledger | None = None) -> None:
        self.clock = ManualClock()
        self.events = EventLog()
        self.caller = Caller(principal="test@example.org")
        self.executed: list[Plan] = []
        self.gate = Gate(
            settings or GateSettings.model_construct(),  # defaults, whatever the environment
            recorder=self.events,
            ledger=ledger or MemoryLedger(clock=self.clock),
            caller=lambda: self.caller,
            clock=self.clock,
        )
        self._issued: dict[str, Plan] = {}

    async def preflight(self, tool: str, *, target: str | None = None, **details: Any) -> str:
        """Run a preflight and return its token; without a target the first detail names it."""
        plan = plan_of(tool, target=target, **details)
        issued = await self.gate.preflight(tool, plan)
        self._issued[issued.token] = plan
        return issued.token

    async def confirm(
        self,
        token: str,
        *,
        plan: Plan | None = None,
        execute: Callable[[Plan], Any] | None = None,
        address: str | None = None,
        **caller: Any,
    ) -> Confirmed[Any] | Refusal:
        """Present a token, by default for the call that it was issued for.

        Args:
            token: the token.
            plan: another plan than the one shown.
            execute: the work; by default the plan is noted in `executed`.
            address: the client's address.
            caller: other fields of `Caller`.
        """
        approved = plan or self._issued[token]
        if address is not None:
            caller |= {"client_address": address, "address_source": AddressSource.PEER}
        return await self.gate.confirm(
            approved.tool,
            approved,
            token,
            execute or self.executed.append,
            caller=replace(self.caller, **caller),
        )


def plan_of(tool: str, *, target: str | None = None, **details: Any) -> Plan:
    """Make a plan of a tool in the table; without a target the first detail names it."""
    row = tool_named(tool, TOOLS)
    named = target if target is not None else next(map(leaf_text, details.values()), None)
    return Plan(
        tool=tool,
        target=named,
        action=row.action,
        summary=f"{row.action} {named or ''}".strip(),
        details=details,
        reversible=row.reversible,
    )
