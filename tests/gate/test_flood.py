"""A flood of garbage beside genuine confirms, with a real journal on disk."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.token_mutations import Trial
from tests.gate.common import DELETE, plan, shared_gate, token_free
from tests.producer.support import bodies_in, events_in, journal_in, settings_for

from approvaltrail.gate import Confirmed, SqliteLedger, SystemClock
from approvaltrail.producer import Producer
from approvaltrail.schemas import EventType, Reason
from approvaltrail.schemas.token_shape import looks_like_token

GARBAGE, GENUINE, AT_ONCE = 3_000, 10, 100
ROOM_MIB = 24
"""What the process may grow by during the flood; one event of each kept would take more."""


def resident_mib() -> float:
    """Return the memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.timeout(120)
async def test_a_flood_neither_hides_nor_is_hidden(tmp_path: Path) -> None:
    """S-03: thousands of garbage confirms are all recorded, and the genuine ones succeed.

    Memory stays flat, the journal holds each event once, and no bytes of a genuine token.
    """
    clock, executed = SystemClock(), []
    async with Producer(settings_for(tmp_path / "journals")) as producer:
        gate = shared_gate(producer, SqliteLedger(tmp_path / "t.db", clock=clock), clock)  # type: ignore[arg-type]
        issued = [await gate.preflight(DELETE, plan()) for _ in range(GENUINE)]
        mutants = Trial(seed=3).mutants()
        answers: Counter[str] = Counter()

        async def garbage() -> None:
            _, mutant = next(mutants)
            answer = await gate.confirm(DELETE, plan(), mutant, executed.append)
            answers[answer.code.value] += 1

        async def genuine(token: str) -> None:
            answer = await gate.confirm(DELETE, plan(), token, executed.append)
            assert isinstance(answer, Confirmed)

        settled = 0.0
        for round_number in range(GARBAGE // AT_ONCE):
            if round_number == GARBAGE // AT_ONCE // 3:
                settled = resident_mib()
            flood = [garbage() for _ in range(AT_ONCE)]
            if round_number % 3 == 0:
                flood.append(genuine(issued[round_number // 3].token))
            await asyncio.gather(*flood)
        grown = resident_mib() - settled
        gate.close()
    assert len(executed) == GENUINE
    assert grown < ROOM_MIB
    events = events_in(journal_in(tmp_path / "journals"))
    assert Counter(event.reason.value for event in events if event.reason) == answers
    assert sum(answers.values()) == GARBAGE
    kinds = Counter(event.event_type for event in events)
    assert kinds == {
        EventType.ISSUED: GENUINE,
        EventType.ACCEPTED: GENUINE,
        EventType.COMPLETED: GENUINE,
        EventType.REFUSED: GARBAGE,
    }
    assert [event.sequence for event in events] == list(range(1, GARBAGE + 3 * GENUINE + 1))
    assert token_free(events, *(one.token for one in issued))  # type: ignore[arg-type]
    assert not any(looks_like_token(body.decode("latin-1")) for body in bodies_in_all(tmp_path))
    assert answers.keys() <= {
        Reason.MALFORMED_TOKEN,
        Reason.BAD_SIGNATURE,
        Reason.UNKNOWN_KEY,
        Reason.MISSING_TOKEN,
    }


def bodies_in_all(folder: Path) -> list[bytes]:
    """Return the journal's bytes as they stand on disk."""
    return bodies_in(journal_in(folder / "journals"))
