"""Single use under pressure."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from tests.gate.common import DELETE, plan, shared_gate
from tests.gate.places import LedgerPlace
from tests.gate.racing import race, race_on

from approvaltrail.gate import Confirmed, Gate
from approvaltrail.gate.testing import EventLog, ManualClock

PROCESSES, THREADS = 8, 32
ATTEMPTS = PROCESSES * THREADS


@pytest.fixture(scope="module")
def racers() -> Iterator[tuple[ProcessPoolExecutor, Any]]:
    """Give eight processes and a barrier for them, for all ledgers in turn."""
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager, ProcessPoolExecutor(PROCESSES, mp_context=spawn) as pool:
        yield pool, manager.Barrier(PROCESSES)


def gate_at(place: LedgerPlace, events: EventLog, clock: ManualClock) -> Gate:
    """Make a gate on the ledger there; one in memory goes with a secret of its own."""
    secret: dict[str, Any] = {"confirm_secret": None} if place.kind == "memory" else {}
    return shared_gate(events, place.open(clock, prune_every=256), clock, **secret)


@pytest.mark.timeout(180)
def test_of_many_processes_one_executes(
    place: LedgerPlace, clock: ManualClock, racers: tuple[ProcessPoolExecutor, Any]
) -> None:
    """G-15: 8 processes of 32 threads confirm one token: one acceptance, all else replays.

    A ledger in memory serves one process alone, so there all the threads are that one's.
    """
    issuances = EventLog()
    issuer = gate_at(place, issuances, clock)
    token = issuer.preflight_sync(DELETE, plan()).token
    if place.kind == "memory":
        counts = Counter(race_on(issuer, issuances, token, ATTEMPTS))
        assert counts.pop("event issued") == 1
    else:
        issuer.close()
        pool, together = racers
        running = [pool.submit(race, place, token, THREADS, together) for _ in range(PROCESSES)]
        counts = sum((Counter(one.result(120)) for one in running), Counter[str]())
    assert counts == {
        "accepted": 1,
        "executed": 1,
        "already_used": ATTEMPTS - 1,
        "event accepted": 1,
        "event completed": 1,
        "event replayed": ATTEMPTS - 1,
    }


async def test_of_many_tasks_one_executes(place: LedgerPlace, clock: ManualClock) -> None:
    """G-15: 32 tasks confirm one token at once: one acceptance, 31 replays, each one event."""
    events, executed = EventLog(), []
    gate = gate_at(place, events, clock)
    issued = await gate.preflight(DELETE, plan())
    answers = await asyncio.gather(
        *(gate.confirm(DELETE, plan(), issued.token, executed.append) for _ in range(32))
    )
    gate.close()
    assert sum(isinstance(answer, Confirmed) for answer in answers) == 1
    assert len(executed) == 1
    assert Counter(events.types) == {"issued": 1, "accepted": 1, "completed": 1, "replayed": 31}
