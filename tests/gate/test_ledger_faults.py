"""Faults at each step of a claim, on real servers: closed, distinct, recorded."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine
from tests.gate.common import DELETE, EXECUTE, plan, shared_gate, token_free
from tests.gate.sql_servers import DRIVERS, SqlDatabase, SqlServer
from tests.gate.wire import AtCommit, Wire, wire_to

from approvaltrail.gate import Confirmed, Gate, Refusal
from approvaltrail.gate.errors import LedgerBusyError
from approvaltrail.gate.ledger import AlreadySpent, Claim, Claimed
from approvaltrail.gate.ledger.sql import SqlLedger, migrate_ledger
from approvaltrail.gate.ledger.sql_engine import Waits
from approvaltrail.gate.testing import EventLog, ManualClock
from approvaltrail.schemas import Reason
from approvaltrail.schemas.messages import Probe

WAITS = Waits(connect_seconds=1, answer_seconds=1.3, busy_seconds=1, connections=2)
BOUND_SECONDS = 30
"""A server's own bounds are 50 s, or none: who forgets ours waits for longer than this."""


@dataclass(kw_only=True)
class Stand:
    """A gate whose ledger is reached over a wire that can break."""

    database: SqlDatabase
    wire: Wire
    ledger: SqlLedger
    gate: Gate
    events: EventLog
    executed: list[Any] = field(default_factory=list)

    def issue(self, tool: str = DELETE) -> str:
        """Run a preflight and return its token."""
        return self.gate.preflight_sync(tool, plan(tool)).token

    def confirm(self, token: str, tool: str = DELETE) -> Confirmed[Any] | Refusal:
        """Present a token; it must be decided within the bound."""
        begun = time.monotonic()
        answer = self.gate.confirm_sync(tool, plan(tool), token, self.executed.append)
        assert time.monotonic() - begun < BOUND_SECONDS
        return answer

    def fault_on_insert(self, fault: str) -> None:
        """Let the server itself report a fault for every INSERT."""
        if self.database.server.family == "mysql":
            self.database.run(
                "CREATE TRIGGER fault BEFORE INSERT ON mcp_confirm_nonce FOR EACH ROW "
                f"SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {MYSQL[fault]}, MESSAGE_TEXT = 'made'"
            )
        else:
            self.database.run(
                "CREATE OR REPLACE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$BEGIN RAISE EXCEPTION 'made' USING ERRCODE = '{POSTGRESQL[fault]}'; END$$",
                "CREATE TRIGGER fault BEFORE INSERT ON mcp_confirm_nonce "
                "FOR EACH ROW EXECUTE FUNCTION fault()",
            )

    def mend(self) -> None:
        """Take the fault away."""
        mysql = self.database.server.family == "mysql"
        self.database.run("DROP TRIGGER fault" + ("" if mysql else " ON mcp_confirm_nonce"))


MYSQL = {"deadlock": 1213, "timeout": 1969, "read-only": 1290, "full": 1114, "odd": 1644}
POSTGRESQL = {
    "deadlock": "40P01",
    "timeout": "57014",
    "read-only": "25006",
    "full": "53100",
    "odd": "P0001",
}


@pytest.fixture(scope="module", params=["mysql", "postgresql"])
def prepared(request: pytest.FixtureRequest) -> Iterator[SqlDatabase]:
    """Give a database with a ledger's tables; the tests here leave them as they were."""
    server: SqlServer = request.getfixturevalue(request.param)
    database = server.fresh()
    migrate_ledger(database.dsn, clock=ManualClock(), skew=timedelta(0))
    yield database
    server.drop(database)


@pytest.fixture
def stand(prepared: SqlDatabase, clock: ManualClock) -> Iterator[Stand]:
    """Give a gate on that database, over a wire."""
    database = prepared
    events = EventLog()
    with wire_to(database.server.port) as wire:
        ledger = SqlLedger(database.dsn_by(wire.port), clock=clock, waits=WAITS)
        gate = shared_gate(events, ledger, clock)
        yield Stand(database=database, wire=wire, ledger=ledger, gate=gate, events=events)
        ledger.close()


def refused_closed(stand: Stand, answer: Any, code: Reason, detail: str) -> None:
    """Assert a refusal that executed nothing, with one event that names the fault."""
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.nothing_executed, stand.executed) == (code, True, [])
    event = stand.events[-1]
    assert (event.event_type, event.reason) == ("refused", code)
    assert event.attributes == (("detail", detail),)
    assert event.event_id == answer.event_id


def others_go_on(stand: Stand) -> None:
    """Assert that a tool without a ledger is confirmed meanwhile."""
    assert isinstance(stand.confirm(stand.issue(EXECUTE), EXECUTE), Confirmed)
    stand.executed.clear()


def cut(stand: Stand) -> Callable[[], None]:
    """Refuse connections."""
    stand.wire.cut()
    return stand.wire.connect


def lose_before(stand: Stand) -> Callable[[], None]:
    """Lose every commit before the server has it."""
    stand.wire.break_commits(AtCommit.LOST_BEFORE, times=100)
    return lambda: stand.wire.break_commits(AtCommit.PASSED, times=0)


def swallow(stand: Stand) -> Callable[[], None]:
    """Answer no commit."""
    stand.wire.break_commits(AtCommit.SWALLOWED, times=100)
    return lambda: stand.wire.break_commits(AtCommit.PASSED, times=0)


def reported(fault: str) -> Callable[[Stand], Callable[[], None]]:
    """Make a fault that the server reports."""

    def make(stand: Stand) -> Callable[[], None]:
        stand.fault_on_insert(fault)
        return stand.mend

    return make


FAULTS = {
    "refused connection": (cut, Reason.LEDGER_UNAVAILABLE, "LedgerUnreachableError"),
    "acknowledgement lost before": (
        lose_before,
        Reason.LEDGER_UNAVAILABLE,
        "LedgerUnreachableError",
    ),
    "no answer": (swallow, Reason.LEDGER_UNAVAILABLE, "LedgerTimeoutError"),
    "deadlock": (reported("deadlock"), Reason.LEDGER_UNAVAILABLE, "LedgerBusyError"),
    "timeout": (reported("timeout"), Reason.LEDGER_UNAVAILABLE, "LedgerTimeoutError"),
    "read-only": (reported("read-only"), Reason.LEDGER_UNAVAILABLE, "LedgerReadOnlyError"),
    "full": (reported("full"), Reason.LEDGER_FULL, "LedgerFullError"),
    "anything else": (reported("odd"), Reason.LEDGER_UNAVAILABLE, "LedgerUnavailableError"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_closes_the_ledgered_tools_alone(stand: Stand, name: str) -> None:
    """G7, S-16: a fault refuses within a bound, by its own name; afterwards the token works once.

    The five unledgered tools go on meanwhile.
    """
    make, code, detail = FAULTS[name]
    token = stand.issue()
    mend = make(stand)
    refused_closed(stand, stand.confirm(token), code, detail)
    assert stand.events[-1].nonce == stand.events[0].nonce
    others_go_on(stand)
    mend()
    assert isinstance(stand.confirm(token), Confirmed)
    assert stand.confirm(token).code is Reason.ALREADY_USED
    assert len(stand.executed) == 1
    assert token_free(list(stand.events), token)


def test_a_lost_acknowledgement_is_harmless(stand: Stand) -> None:
    """G7: a commit that was done but not acknowledged is found again under its claim id."""
    token = stand.issue()
    stand.wire.break_commits(AtCommit.LOST_AFTER)
    done = stand.confirm(token)
    assert isinstance(done, Confirmed)
    again = stand.confirm(token)
    assert (again.code, len(stand.executed)) == (Reason.ALREADY_USED, 1)
    assert stand.events[-1].spent_claim_id == done.event_id


def test_a_commit_that_never_arrived_is_asked_again(stand: Stand) -> None:
    """G-16: a connection lost before the commit spends nothing; the claim is asked once more."""
    token = stand.issue()
    stand.wire.break_commits(AtCommit.LOST_BEFORE)
    assert isinstance(stand.confirm(token), Confirmed)
    assert len(stand.executed) == 1


def test_an_outage_after_the_commit_leaves_the_token_spent_and_says_it_does_not_know(
    stand: Stand,
) -> None:
    """X3, X4: what became of the claim is unknown; later the replay names the refused attempt."""
    token = stand.issue()
    stand.wire.break_commits(AtCommit.LOST_AFTER, then=stand.wire.cut)
    refused = stand.confirm(token)
    refused_closed(stand, refused, Reason.LEDGER_UNAVAILABLE, "LedgerUnreachableError")
    assert refused.token_spent is None
    stand.wire.connect()
    assert stand.confirm(token).code is Reason.ALREADY_USED
    assert stand.events[-1].spent_claim_id == refused.event_id
    assert stand.executed == []


def test_a_certain_fault_after_an_unclear_one_is_still_unclear(stand: Stand) -> None:
    """X3: after a lost acknowledgement no later answer may say that the token is unspent."""
    token = stand.issue()
    stand.wire.break_commits(AtCommit.LOST_AFTER, then=lambda: stand.fault_on_insert("full"))
    refused = stand.confirm(token)
    refused_closed(stand, refused, Reason.LEDGER_UNAVAILABLE, "LedgerUnreachableError")
    assert refused.token_spent is None
    stand.mend()
    assert stand.confirm(token).code is Reason.ALREADY_USED


def test_connections_that_died_idle_are_replaced_unseen(stand: Stand) -> None:
    """A server restarted between two claims costs the second nothing but a new connection."""
    assert isinstance(stand.confirm(stand.issue()), Confirmed)
    stand.wire.cut()
    stand.wire.connect()
    assert isinstance(stand.confirm(stand.issue()), Confirmed)


def test_an_answer_that_came_late_is_never_taken_for_another(stand: Stand) -> None:
    """G-16: a connection whose answer was not read is given up, not used for the next claim."""
    token = stand.issue()
    stand.wire.break_commits(AtCommit.SWALLOWED, times=2)
    assert stand.confirm(token).code is Reason.LEDGER_UNAVAILABLE
    assert isinstance(stand.confirm(token), Confirmed)
    assert stand.confirm(token).code is Reason.ALREADY_USED


def test_others_locks_are_waited_for(stand: Stand, clock: ManualClock) -> None:
    """G7: a nonce that another transaction holds is waited for; if that rolls back, ours wins."""
    claim = new_claim(clock)
    with other_holds(stand, claim) as other:
        release = threading.Timer(0.3, other.rollback)
        release.start()
        assert isinstance(stand.ledger.claim(claim), Claimed)
        release.join()


def test_others_locks_are_waited_for_within_a_bound(stand: Stand, clock: ManualClock) -> None:
    """G7: held for longer than the bound is busy, no outage, and spends nothing."""
    claim = new_claim(clock)
    with other_holds(stand, claim) as other:
        begun = time.monotonic()
        with pytest.raises(LedgerBusyError, match="held by others"):
            stand.ledger.claim(claim)
        assert time.monotonic() - begun < BOUND_SECONDS
        assert stand.ledger.probe() is Probe.OK
        other.rollback()
    assert isinstance(stand.ledger.claim(claim), Claimed)


def test_a_deadlock_is_asked_again(stand: Stand, clock: ManualClock) -> None:
    """G7: a claim that the server chose as a deadlock's victim is repeated within the bound."""
    stand.fault_on_insert("deadlock")
    mending = threading.Timer(0.1, stand.mend)
    mending.start()
    assert isinstance(stand.ledger.claim(new_claim(clock)), Claimed)
    mending.join()


def test_a_transaction_that_commits_while_one_waits_is_a_replay(
    stand: Stand, clock: ManualClock
) -> None:
    """G-15: waiting for another's commit ends in a replay that names its claim."""
    claim = new_claim(clock)
    with other_holds(stand, claim) as other:
        release = threading.Timer(0.3, other.commit)
        release.start()
        answer = stand.ledger.claim(claim)
        release.join()
    assert isinstance(answer, AlreadySpent)
    assert answer.claim_id == "other"


def test_a_crowd_waits_for_connections_within_a_bound(stand: Stand, clock: ManualClock) -> None:
    """The number of connections is bounded; who gets none in time is told that it is busy."""
    claim = new_claim(clock)
    with stand.ledger._connected(), stand.ledger._connected():
        begun = time.monotonic()
        with pytest.raises(LedgerBusyError):
            stand.ledger.claim(claim)
        assert time.monotonic() - begun < BOUND_SECONDS
    assert isinstance(stand.ledger.claim(claim), Claimed)


def new_claim(clock: ManualClock) -> Claim:
    """Make a claim of a new nonce."""
    now = clock.now()
    return Claim(
        nonce=secrets.token_urlsafe(16),
        claim_id="ours",
        issued_at=now,
        expires_at=now + timedelta(minutes=10),
        tool=DELETE,
    )


@contextmanager
def other_holds(stand: Stand, claim: Claim) -> Iterator[Any]:
    """Give a connection whose open transaction has inserted the nonce."""
    family = stand.database.server.family
    engine = create_engine(stand.database.dsn.replace(family, DRIVERS[family], 1))
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(
                "INSERT INTO mcp_confirm_nonce VALUES "
                f"('{claim.nonce}', 'other', 0, 9000000000000000, 'tool')"
            )
            yield connection
    finally:
        engine.dispose()
