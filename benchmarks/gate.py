"""The gate: what verifying, spending and recording add to a call.

`python -m benchmarks.gate --json [--count N]`. Verification without a ledger beside the bare HMAC
of the same bytes; a claim in SQLite beside a bare synced INSERT; and a whole confirm, ledger and a
real producer's journal included, beside calling the work alone.
"""

from __future__ import annotations

import asyncio
import hmac
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog
from pydantic import SecretStr

from approvaltrail.gate import Caller, Confirmed, Gate, GateSettings, Plan, SqliteLedger
from approvaltrail.gate.clock import SystemClock
from approvaltrail.gate.keys import KeyRing, ring_of
from approvaltrail.gate.ledger import Claim, Claimed
from approvaltrail.gate.plan import plan_hash
from approvaltrail.gate.tokens import Claims, mint
from approvaltrail.gate.verify import Verified, check_plan, check_token
from benchmarks.harness import ROUNDS, Figure, arguments, interleaved, percentile, show
from benchmarks.record import running_producer

SECRET: Final = "a secret of benchmarks alone, 32 bytes or more"
TOOL: Final = "tidb_delete_cluster"
TENANT: Final = "acme"
LIFETIME: Final = timedelta(hours=1)
GATE_SETTINGS: Final = GateSettings.model_construct(
    confirm_secret=SecretStr(SECRET), confirm_ttl_ms=3_600_000
)


def plan() -> Plan:
    """Return a plan of an ordinary size."""
    return Plan(
        tool=TOOL,
        target="prod-7",
        action="delete cluster",
        summary="delete cluster prod-7 with its backups",
        details={"region": "eu-central-1", "nodes": 3, "backups": ["b-1", "b-2"], "force": False},
        reversible=False,
    )


def token(ring: KeyRing) -> str:
    """Return a token for that plan."""
    now = SystemClock().now()
    claims = Claims(
        nonce="AAECAwQFBgcICQoLDA0ODw",
        tool=TOOL,
        target="prod-7",
        tenant=TENANT,
        plan_hash=plan_hash(plan()),
        issued_at=now,
        expires_at=now + LIFETIME,
        key_id=ring.signing.key_id,
    )
    return mint(claims, ring)


def per_call(work: Callable[[], object], count: int) -> float:
    """Return the microseconds of one call, over as many."""
    begun = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - begun) / count * 1_000_000


def verification(count: int) -> dict[str, float]:
    """Microseconds of a verification up to the ledger, and of the HMAC in it."""
    ring = ring_of(SECRET)
    presented, made = token(ring), plan()
    signed = presented.rpartition(".")[0].encode()
    clock = SystemClock()

    def verify() -> None:
        claims = check_token(presented, ring, clock.now(), tenant=TENANT, tool=TOOL)
        assert isinstance(claims, Claims)
        assert isinstance(check_plan(claims, made, "prod-7"), Verified)

    return interleaved(
        {
            "verify": lambda: per_call(verify, count),
            "hmac": lambda: per_call(lambda: hmac.digest(SECRET.encode(), signed, "sha256"), count),
        }
    )


def claims_in_sqlite(count: int) -> dict[str, float]:
    """Median milliseconds of a claim, and of a bare INSERT that is synced as well."""
    with tempfile.TemporaryDirectory(prefix="gate-") as folder:
        ledger = SqliteLedger(Path(folder) / "tokens.db")
        ledger.prepare()
        bare = sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)
        bare.execute("PRAGMA journal_mode = WAL").fetchall()
        bare.execute("PRAGMA synchronous = FULL")
        bare.execute("CREATE TABLE spent (nonce TEXT PRIMARY KEY) WITHOUT ROWID")
        numbers = iter(range(10_000_000))

        def claim() -> None:
            now = SystemClock().now()
            made = Claim(
                nonce=f"nonce{next(numbers):017d}",
                claim_id=f"claim{next(numbers):017d}",
                issued_at=now,
                expires_at=now + LIFETIME,
                tool=TOOL,
            )
            assert isinstance(ledger.claim(made), Claimed)

        def insert() -> None:
            bare.execute("INSERT INTO spent VALUES (?)", (f"nonce{next(numbers):017d}",))

        found = interleaved(
            {"claim": lambda: median_of(claim, count), "insert": lambda: median_of(insert, count)}
        )
        bare.close()
        ledger.close()
    return found


def median_of(work: Callable[[], object], count: int) -> float:
    """Return the median milliseconds of a call."""
    waits = []
    for _ in range(count):
        begun = time.perf_counter()
        work()
        waits.append((time.perf_counter() - begun) * 1_000)
    return percentile(waits, 0.5)


async def confirms(count: int) -> dict[str, list[float]]:
    """Milliseconds of confirms through gate, ledger and journal, and of their work alone."""
    waits: dict[str, list[float]] = {"confirm": [], "alone": []}

    async def work(_: Plan) -> str:
        await asyncio.sleep(0)
        return "deleted"

    with running_producer() as producer, tempfile.TemporaryDirectory(prefix="gate-") as folder:
        ledger = SqliteLedger(Path(folder) / "tokens.db")
        gate = Gate(
            GATE_SETTINGS,
            recorder=producer,
            ledger=ledger,
            caller=lambda: Caller(tenant=TENANT, principal="ana@example.org"),
        )
        for _ in range(count):
            issued = await gate.preflight(TOOL, plan())
            begun = time.perf_counter()
            answer = await gate.confirm(TOOL, plan, issued.token, work, confirm_target="prod-7")
            waits["confirm"].append((time.perf_counter() - begun) * 1_000)
            assert isinstance(answer, Confirmed)
            begun = time.perf_counter()
            await work(plan())
            waits["alone"].append((time.perf_counter() - begun) * 1_000)
        gate.close()
    return waits


def figures(count: int) -> Iterator[Figure]:
    """Measure everything."""
    verified = verification(count)
    yield Figure(
        name="verification without ledger / bare HMAC",
        value=verified["verify"],
        unit="µs",
        baseline=verified["hmac"],
    )
    claimed = claims_in_sqlite(max(1, count // ROUNDS))
    yield Figure(
        name="SQLite claim p50 / bare synced INSERT",
        value=claimed["claim"],
        unit="ms",
        baseline=claimed["insert"],
    )
    waits = asyncio.run(confirms(count))
    for share in (0.5, 0.99):
        yield Figure(
            name=f"gate and recording add to a confirm, p{share * 100:g}",
            value=percentile(waits["confirm"], share) - percentile(waits["alone"], share),
            unit="ms",
        )


def main() -> None:
    """Measure and print."""
    chosen = arguments(__doc__, count=1_000)
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    show(figures(chosen.count), as_json=chosen.json)


if __name__ == "__main__":
    main()
