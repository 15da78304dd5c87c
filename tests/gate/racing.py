"""What each racing process runs: threads that present one token at the same moment."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier

from tests.gate.common import DELETE, plan, shared_gate
from tests.gate.places import LedgerPlace

from approvaltrail.gate import Confirmed, Gate
from approvaltrail.gate.testing import EventLog, ManualClock

PATIENCE_SECONDS = 60


def race(place: LedgerPlace, token: str, threads: int, together: Barrier) -> dict[str, int]:
    """Confirm one token from many threads of this process, when the others are ready too."""
    events, clock = EventLog(), ManualClock()
    ledger = place.open(clock, busy_seconds=PATIENCE_SECONDS, prune_every=256)
    together.wait(PATIENCE_SECONDS)
    try:
        return race_on(shared_gate(events, ledger, clock), events, token, threads)
    finally:
        ledger.close()


def race_on(gate: Gate, events: EventLog, token: str, threads: int) -> dict[str, int]:
    """Confirm one token from many threads; count answers, events and executions."""
    start, executed = threading.Barrier(threads), Counter[str]()

    def present(_: int) -> str:
        start.wait(PATIENCE_SECONDS)
        answer = gate.confirm_sync(DELETE, plan(), token, lambda _: executed.update(["executed"]))
        return "accepted" if isinstance(answer, Confirmed) else answer.code.value

    with ThreadPoolExecutor(threads) as pool:
        answers = Counter(pool.map(present, range(threads)))
    return dict(answers + executed + Counter(f"event {kind}" for kind in events.types))
