"""A process with a gate and a producer that is flooded: `python -m tests.chaos.flooded`.

Arguments: journal directory, bootstrap servers, topic prefix, garbage confirmations. It prints one
JSON line and ends; what it could not deliver stays in the journal.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import structlog
from tests.chaos.recorder import settings_of

from approvaltrail.gate import (
    Caller,
    Confirmed,
    Deployment,
    Gate,
    GateSettings,
    MemoryLedger,
    Plan,
    Refusal,
)
from approvaltrail.producer import Producer

TOOL = "tidb_delete_cluster"
GENUINE_EVERY = 5_000
SETTLED = 10_000
"""Garbage confirmations after which memory has to stay what it is."""
JOURNAL_BYTES = 8 * 1024 * 1024
CALLERS = 50


@dataclass(slots=True)
class Report:
    """What came of it."""

    refused: dict[str, int] = field(default_factory=dict)
    """By reason; those that could only be counted too."""
    only_counted: int = 0
    genuine: int = 0
    genuine_confirmed: int = 0
    unrecorded_at_the_end: int = 0
    peak_kib_settled: int = 0
    peak_kib: int = 0


async def garbage(gate: Gate, number: int) -> tuple[str, bool]:
    """Present a token that nobody issued."""
    made_up = f"at1.{number:060x}.{number:043x}"
    given = plan(number)
    refusal = await gate.confirm(TOOL, given, made_up, executed, confirm_target=given.target)
    assert isinstance(refusal, Refusal)
    return refusal.code, refusal.recorded


def plan(number: int) -> Plan:
    """Return a plan of its own for each number."""
    return Plan(
        tool=TOOL,
        target=f"prod-{number}",
        action="delete cluster",
        summary=f"delete cluster prod-{number}",
        details={"nodes": 3},
        reversible=False,
    )


async def executed(*_: object) -> str:
    """Stand for the work."""
    return "done"


async def genuine(gate: Gate, number: int) -> bool:
    """Take a token and confirm with it."""
    given = plan(number)
    asked = await gate.preflight(TOOL, given)
    answer = await gate.confirm(TOOL, given, asked.token, executed, confirm_target=given.target)
    return isinstance(answer, Confirmed)


async def flood(gate: Gate, count: int, report: Report) -> None:
    """Send all the garbage from several callers, and genuine calls in between."""
    numbers = iter(range(count))
    reasons: Counter[str] = Counter()

    async def caller() -> None:
        for number in numbers:
            code, recorded = await garbage(gate, number)
            reasons[code] += 1
            report.only_counted += not recorded
            if number % GENUINE_EVERY == 0:
                report.genuine += 1
                report.genuine_confirmed += await genuine(gate, count + number)
            if number == SETTLED:
                report.peak_kib_settled = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    report.refused = dict(reasons)


async def run(directory: Path, servers: str, prefix: str, count: int) -> Report:
    """Run the flood and close."""
    settings = settings_of(directory, servers, prefix)
    changes = {"journal_limit_bytes": JOURNAL_BYTES, "close_seconds": 2.0}
    producer = Producer(settings.model_copy(update=changes))
    report = Report()
    async with producer:
        gate = Gate(
            GateSettings.model_construct(deployment=Deployment.STDIO),
            recorder=producer,
            ledger=MemoryLedger(),
            caller=lambda: Caller(tenant="acme", principal="ana@example.org"),
        )
        await flood(gate, count, report)
        report.unrecorded_at_the_end = producer.health().unrecorded_refusals
    report.peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return report


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    folder, kafka, name, garbage_count = sys.argv[1:]
    done = asyncio.run(run(Path(folder), kafka, name, int(garbage_count)))
    print(json.dumps(asdict(done)), flush=True)  # noqa: T201 - the test reads it
