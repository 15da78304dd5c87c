"""Whatever happens in whatever order, no token executes twice and nothing executes unrecorded."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)
from tests.gate.common import DELETE, EXECUTE, plan, token_free
from tests.gate.common import settings as gate_settings
from tests.gate.faulty_sqlite import AtClaim, Crash, Faults
from tests.gate.places import RETENTION
from tests.gate.sql_servers import roomy_memory

from approvaltrail.gate import Caller, Confirmed, Gate, SqliteLedger
from approvaltrail.gate.errors import PreflightRefusedError
from approvaltrail.gate.reconcile import reconcile
from approvaltrail.gate.testing import EventLog, ManualClock
from approvaltrail.schemas import EventType, Reason

ROTATIONS = 4
START = datetime.fromisoformat("2026-01-01T12:00:00+00:00")
OTHER_TOOL = {DELETE: "tidb_delete_branch", EXECUTE: "tidb_create_branch"}


@dataclass(frozen=True)
class Issued:
    """A token, and what the model knows of it."""

    token: str
    tool: str
    nonce: str
    secret: str
    issued_at: datetime
    expires_at: datetime


class Journal(EventLog):
    """An event log that may be full, or become so at an acceptance."""

    full_at_acceptance = False

    def record_sync(self, event: Any) -> Any:
        """Record, unless it is full."""
        if self.full_at_acceptance and event.event_type is EventType.ACCEPTED:
            self.unavailable = True
        return super().record_sync(event)


class ConfirmMachine(RuleBasedStateMachine):
    """One service over many crashes: its store and its journal stay, its process does not."""

    tokens: Bundle[Issued] = Bundle("tokens")

    @initialize()
    def begin(self) -> None:
        """Start the service for the first time."""
        self.folder = Path(tempfile.mkdtemp(prefix="gate-machine-", dir=roomy_memory()))
        self.clock, self.events, self.faults = ManualClock(START), Journal(), Faults()
        self.secrets = [secrets.token_urlsafe(32)]
        self.executed: Counter[str] = Counter()
        self.unrecorded_execution = False
        self.spent: dict[str, datetime] = {}
        self.silent: set[str] = set()
        self.tokens_made: list[str] = []
        self.decided = 0
        self.ledger, self.gate = self._process()
        self.ledger.prepare()

    def _process(self) -> tuple[SqliteLedger, Gate]:
        ledger = SqliteLedger(
            self.folder / "tokens.db",
            clock=self.clock,
            retention=RETENTION,
            prune_every=3,
            connection_class=self.faults.connection_class(),
        )
        previous = self.secrets[-2] if len(self.secrets) > 1 else None
        gate = Gate(
            gate_settings(confirm_secret=self.secrets[-1], confirm_secret_previous=previous),
            recorder=self.events,
            ledger=ledger,
            clock=self.clock,
        )
        return ledger, gate

    # --- what may happen

    @rule(target=tokens, tool=st.sampled_from([DELETE, EXECUTE]))
    def issue(self, tool: str) -> Any:
        """Ask for a token, and get it or the reason why not."""
        blocked = self.events.unavailable or (self.faults.down and tool == DELETE)
        caller = Caller(tenant="acme")
        try:
            issued = self.gate.preflight_sync(tool, plan(tool), caller=caller)
        except PreflightRefusedError:
            assert blocked
            self.decided += self.events.unavailable
            return multiple()
        assert not (self.events.unavailable or blocked) or tool == DELETE
        self.decided += 1
        self.tokens_made.append(issued.token)
        return Issued(
            token=issued.token,
            tool=tool,
            nonce=issued.nonce,
            secret=self.secrets[-1],
            issued_at=issued.issued_at,
            expires_at=issued.expires_at,
        )

    @rule(issued=tokens, times=st.integers(1, 3))
    def confirm(self, issued: Issued, times: int) -> None:
        """Present a token for its own call, perhaps again and again."""
        for _ in range(times):
            self._confirm(issued)

    @rule(issued=tokens, at_claim=st.sampled_from(AtClaim), full=st.booleans())
    def confirm_under_faults(self, issued: Issued, at_claim: AtClaim, *, full: bool) -> None:
        """Present a token while store or journal fail in the middle."""
        self._confirm(issued, at_claim=at_claim, full_at_acceptance=full)

    @rule(issued=tokens)
    def confirm_and_die(self, issued: Issued) -> None:
        """Present a token; the process dies at the work."""
        self._confirm(issued, dies_at_work=True)

    @rule(issued=tokens, wrong=st.sets(st.sampled_from(["tenant", "tool", "plan"]), min_size=1))
    def confirm_another_call(self, issued: Issued, wrong: set[str]) -> None:
        """Present a token for what it was not issued for."""
        self._confirm(issued, wrong=wrong)

    def _confirm(
        self,
        issued: Issued,
        *,
        at_claim: AtClaim = AtClaim.PASSES,
        wrong: set[str] = frozenset(),  # type: ignore[assignment]
        full_at_acceptance: bool = False,
        dies_at_work: bool = False,
    ) -> None:
        self.faults.at_claim = at_claim
        self.events.full_at_acceptance = full_at_acceptance
        expected = self._expected(issued, wrong)
        claims = issued.tool == DELETE and expected is None
        forgotten = expected is Reason.EXPIRED and self.clock.now() < issued.expires_at
        self.at_work = False
        tool = OTHER_TOOL[issued.tool] if "tool" in wrong else issued.tool
        changes: dict[str, Any] = {"details": {"nodes": 9}} if "plan" in wrong else {}

        def work(_: Any) -> None:
            self.at_work = True
            self.executed[issued.nonce] += 1
            self.unrecorded_execution |= not any(
                event.nonce == issued.nonce and event.event_type is EventType.ACCEPTED
                for event in self.events
            )
            if dies_at_work:
                raise Crash

        try:
            answer = self.gate.confirm_sync(
                tool,
                plan(tool, **changes),
                issued.token,
                work,
                caller=Caller(tenant="other" if "tenant" in wrong else "acme"),
            )
        except Crash:
            self._died(issued, at_claim, claims=claims)
        else:
            self.decided += 1
            if claims:
                self.spent[issued.nonce] = self.clock.now()
            if (claims or forgotten) and at_claim is AtClaim.DOWN_AFTER:
                expected = Reason.LEDGER_UNAVAILABLE
            elif expected is None and full_at_acceptance:
                expected = Reason.NOT_RECORDED
            assert (None if isinstance(answer, Confirmed) else answer.code) is expected
        finally:
            self.faults.at_claim = AtClaim.PASSES
            self.events.full_at_acceptance = False

    @rule(seconds=st.sampled_from([1, 30, -1, -30, 300, -300, 599, 600, 664, 665, 666, -7200]))
    def clock_jumps(self, seconds: int) -> None:
        """Time passes, or the clock is set."""
        self.clock.advance(seconds=seconds)

    @rule(hours=st.sampled_from([1, 48]))
    def clock_is_ahead_for_a_while(self, hours: int) -> None:
        """Somebody prunes while the clock is wrong; then it is set right again."""
        if not self.faults.down:
            self.clock.advance(hours=hours)
            self.ledger.prune()
            self.clock.advance(hours=-hours)

    @rule()
    def prune(self) -> None:
        """Somebody drops what no token should need."""
        if not self.faults.down:
            self.ledger.prune()

    @precondition(lambda self: len(self.secrets) < ROTATIONS)
    @rule()
    def rotate(self) -> None:
        """Replace the secret; the one before still verifies."""
        self.secrets.append(secrets.token_urlsafe(32))
        self._restart()

    @rule()
    def restart(self) -> None:
        """Replace the process by another."""
        self._restart()

    @precondition(lambda self: not self.faults.down)
    @rule()
    def store_goes(self) -> None:
        """Take the store away."""
        self.faults.down = True

    @precondition(lambda self: self.faults.down)
    @rule()
    def store_comes(self) -> None:
        """Bring the store back."""
        self.faults.down = False

    @precondition(lambda self: not self.events.unavailable)
    @rule()
    def journal_fills(self) -> None:
        """Let the journal take no events."""
        self.events.unavailable = True

    @precondition(lambda self: self.events.unavailable)
    @rule()
    def journal_empties(self) -> None:
        """Let the journal take events again."""
        self.events.unavailable = False

    # --- what must hold

    @invariant()
    def no_token_executes_twice(self) -> None:
        """Of a ledgered tool."""
        twice = {nonce for nonce, count in self.executed.items() if count > 1}
        assert not twice & self.spent.keys()

    @invariant()
    def nothing_executes_unrecorded(self) -> None:
        """Look for the acceptance in the record before the work begins."""
        assert not self.unrecorded_execution

    @invariant()
    def every_decision_is_one_event(self) -> None:
        """Count events, recorded or not, against decisions; completions and deaths aside."""
        completions = sum(event.event_type is EventType.COMPLETED for event in self.events)
        assert len(self.events) - completions + len(self.events.unrecorded) == self.decided

    def teardown(self) -> None:
        """Compare ledger and record, search the record for tokens, and clear away."""
        self.faults.down = False
        try:
            self._agrees()
        finally:
            self.ledger.close()
            shutil.rmtree(self.folder)

    def _agrees(self) -> None:
        far = timedelta(days=2)
        found = reconcile(
            self.ledger,
            [*self.events, *self.events.unrecorded],
            start=START - far,
            end=START + far * 30,
            now=START + far * 60,
        )
        assert {claim.nonce for claim in found.spent_not_recorded} <= self.silent
        assert not found.contradictions
        assert not found.recorded_not_spent
        assert token_free(list(self.events), *self.tokens_made)

    # --- the model

    def _expected(self, issued: Issued, wrong: set[str]) -> Reason | None:
        """Return the first cause in order, or None where it is accepted or dies."""
        now = self.clock.now()
        if issued.secret not in self.secrets[-2:]:
            return Reason.UNKNOWN_KEY
        if now >= issued.expires_at:
            return Reason.EXPIRED
        for name, reason in (
            ("tenant", Reason.WRONG_TENANT),
            ("tool", Reason.WRONG_TOOL),
            ("plan", Reason.PLAN_CHANGED),
        ):
            if name in wrong:
                return reason
        if self.events.unavailable:
            return Reason.NOT_RECORDED
        return self._ledger_expected(issued) if issued.tool == DELETE else None

    def _ledger_expected(self, issued: Issued) -> Reason | None:
        if issued.issued_at < START and self.ledger._store is not None:
            return Reason.PREDATES_LEDGER  # an open store knows its own age
        if self.faults.down:
            return Reason.LEDGER_UNAVAILABLE
        if issued.issued_at < START:
            return Reason.PREDATES_LEDGER
        if issued.nonce in self._kept():
            return Reason.ALREADY_USED
        if issued.expires_at <= self.ledger.pruned_until:
            return Reason.EXPIRED
        assert issued.nonce not in self.spent
        return None

    def _kept(self) -> set[str]:
        far = timedelta(days=9_999)
        return {claim.nonce for claim in self.ledger.claims(START - far, START + far)}

    def _died(self, issued: Issued, at_claim: AtClaim, *, claims: bool) -> None:
        """Begin again as a new process; what was committed stays."""
        if claims and at_claim is not AtClaim.CRASH_BEFORE:
            self.spent[issued.nonce] = self.clock.now()
        if claims and at_claim is AtClaim.CRASH_AFTER:
            self.silent.add(issued.nonce)
        self.decided += self.at_work
        self._restart()

    def _restart(self) -> None:
        self.ledger.close()
        self.ledger, self.gate = self._process()


ConfirmMachine.TestCase.settings = settings(
    max_examples=200,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(120)
class TestConfirm(ConfirmMachine.TestCase):  # type: ignore[misc]
    """The machine, run."""
