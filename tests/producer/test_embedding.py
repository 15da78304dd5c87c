"""The producer as its embedder treats it: cancelled, closed twice, cut off, left without a word."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
import structlog
from tests.producer.support import (
    NOWHERE,
    bodies_in,
    events_in,
    issued,
    journal_in,
    refused,
    settings_for,
    until,
    wait_until,
)

from approvaltrail.producer import JournalUnavailableError, NotStartedError, Producer
from approvaltrail.producer.errors import Cause
from approvaltrail.producer.heartbeats import heartbeat_of
from approvaltrail.producer.inspection import Condition, list_journals
from approvaltrail.producer.producer import system_clock
from approvaltrail.producer.seals import Sealer
from approvaltrail.producer.state import JournalState
from approvaltrail.schemas.messages import GateState, Probe

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_start_that_is_cancelled_holds_no_journal(tmp_path: Path) -> None:
    """When the server's own start is cut short, the journal is free for the next one."""
    producer = Producer(settings_for(tmp_path, close_seconds=0.3))
    entering = asyncio.create_task(producer.__aenter__())
    for _ in range(3):
        await asyncio.sleep(0)
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert {report.condition for report in list_journals(tmp_path)} == {Condition.FREE}
    with pytest.raises(NotStartedError):
        producer.check()


async def test_closing_twice_at_once(tmp_path: Path) -> None:
    """P-08: of two closes at the same time both return in time and say what is pending."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    await producer.record_many([issued() for _ in range(5)])
    first, second = await asyncio.gather(producer.close(0.5), producer.close(0.5))
    assert first == second
    assert first.pending == 5
    assert (await producer.close(0.5)).pending == 5


def test_threads_that_record_into_a_close(tmp_path: Path) -> None:
    """P-09: whoever records while the producer closes is answered: recorded, or refused."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    numbers: list[int] = []
    refusals: list[Exception] = []

    def record_until_refused() -> None:
        while True:
            try:
                numbers.append(producer.record_sync(issued()).sequence)
            except (JournalUnavailableError, NotStartedError) as error:
                refusals.append(error)
                return

    threads = [threading.Thread(target=record_until_refused) for _ in range(8)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(numbers) > 50, "they record")
    producer.close_sync(0.5)
    for thread in threads:
        thread.join(20)
    assert len(refusals) == 8
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert len(bodies_in(journal_in(tmp_path))) == len(numbers)


def test_a_loop_that_is_closed_before_the_answer(tmp_path: Path) -> None:
    """An event loop that ends while its events are written disturbs nobody else."""
    producer = Producer(settings_for(tmp_path))
    producer.start()

    async def give_up() -> None:
        for _ in range(200):
            asyncio.get_running_loop().create_task(producer.record(issued()))
        await asyncio.sleep(0)  # queued; the loop ends, and cancels them

    asyncio.run(give_up())
    last = producer.record_sync(issued()).sequence
    assert [event.sequence for event in events_in(journal_in(tmp_path))] == [*range(1, last + 1)]
    producer.close_sync(0.5)


async def test_a_close_answers_those_whom_the_disk_does_not(tmp_path: Path) -> None:
    """A close that ends before the disk answers leaves no caller waiting without limit."""
    producer = Producer(settings_for(tmp_path, stall_seconds=60))
    producer.start()
    await producer.record(issued())
    with contextlib.closing(sqlite3.connect(journal_in(tmp_path), isolation_level=None)) as another:
        another.execute("BEGIN IMMEDIATE")  # the writer now waits, as for a disk
        waiting = asyncio.create_task(producer.record(issued()))
        await until(lambda: producer._journal.writing, "it is on its way")
        report = await producer.close(0.5)
        assert not report.in_time
        with pytest.raises(JournalUnavailableError, match="unknown") as caught:
            await asyncio.wait_for(waiting, 20)
        another.execute("ROLLBACK")
    assert caught.value.cause is Cause.STALLED


async def test_a_directory_replaced_by_a_file(tmp_path: Path) -> None:
    """S-06: a file in the directory's place is noticed; with the directory back it goes on."""
    directory = tmp_path / "journals"
    producer = Producer(settings_for(directory))
    producer.start()
    await producer.record(issued())
    directory.rename(tmp_path / "elsewhere")
    directory.touch()
    with pytest.raises(JournalUnavailableError) as caught:
        await producer.record(issued())
    assert caught.value.cause is Cause.MISSING
    directory.unlink()
    (tmp_path / "elsewhere").rename(directory)
    await until(lambda: producer.health().ready, "the directory is back")
    assert (await producer.record(issued())).sequence == 2
    await producer.close(0.5)


WITHOUT_A_WORD = """
import asyncio, logging, sys
from pathlib import Path
from approvaltrail.producer import Producer
from tests.producer.support import issued, settings_for
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
producer = Producer(settings_for(Path(sys.argv[1])))
producer.start()
async def main():
    await asyncio.gather(*[producer.record(issued()) for _ in range(50)])
asyncio.run(main())
"""


def test_a_process_that_ends_without_close(tmp_path: Path) -> None:
    """P-01: a process that just ends does so at once, without complaint, and loses no event."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_A_WORD, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stderr == ""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    assert producer.record_sync(issued()).sequence == 51
    producer.close_sync(0.3)


async def test_a_relay_survives_what_nobody_foresaw(tmp_path: Path) -> None:
    """P-10: whatever error a Kafka client raises, the relay tries again and health names it."""
    attempts = []

    async def connect(settings: object) -> object:
        attempts.append(settings)
        raise AssertionError("inside a client")

    producer = Producer(settings_for(tmp_path, NOWHERE), connect=connect)
    producer.start()
    await producer.record(issued())
    await until(lambda: len(attempts) >= 2, "it tries again")
    health = producer.health()
    assert health.live
    assert "AssertionError" in str(health.reasons)
    assert (await producer.close(0.5)).pending == 1


def test_a_clock_that_is_set_back_delays_no_seal() -> None:
    """P-01: after the clock was set back by an hour a segment is still sealed in seconds."""
    state = JournalState(
        producer_id="p", service="s", instance="i", machine="m", inode=1, created_at=0
    )
    now = [7_200_000_000]
    sealer = Sealer(state, events=1_000, seconds=5, clock=lambda: now[0])
    sealer.add([b"event"])
    now[0] -= 3_600_000_000
    assert sealer.seconds_left() == 5
    now[0] += 5_000_000
    assert sealer.due()


async def test_logs_carry_no_payload(tmp_path: Path) -> None:
    """P2: whatever goes wrong, nothing of an event is in a log or in an error's text."""
    canary = "canary-7f3a"
    clock_fails = False

    def clock() -> int:
        if clock_fails:
            raise RuntimeError(f"a fault with {canary} in its frames")
        return system_clock()

    said: list[str] = []
    event = issued(nonce=canary, target=canary, plan_summary=canary, principal=canary)
    producer = Producer(settings_for(tmp_path), clock=clock)
    with structlog.testing.capture_logs() as logs:
        producer.start()
        await producer.record(event)
        for trouble in ("clock", "too large", "read-only"):
            clock_fails = trouble == "clock"
            if trouble == "read-only":
                journal_in(tmp_path).chmod(0o400)
            large = {"plan_summary": canary * 100_000} if trouble == "too large" else {}
            with pytest.raises(Exception, match="recorded") as caught:
                await producer.record(event.model_copy(update=large))
            said.append(str(caught.value))
        journal_in(tmp_path).chmod(0o600)
        await until(lambda: producer.health().ready, "it recovers")
        await producer.record(event)
        said.append(repr(producer.health()))
        await producer.close(0.5)
    assert {"journal_writer_failed", "journal_unavailable", "journal_recovered"} <= {
        entry["event"] for entry in logs
    }
    assert canary not in repr(logs)
    assert canary not in repr(said)
    assert "exc_info" not in repr(logs), "renderers print the variables of a traceback's frames"


async def test_heartbeat_and_health_say_the_same(tmp_path: Path) -> None:
    """S-04: gate, fill, pending, counted refusals, scrubbed values and the ledger are reported."""
    limit = 1024 * 1024
    producer = Producer(settings_for(tmp_path, journal_limit_bytes=limit))
    producer.start()
    producer.report_ledger(Probe.FAILING)
    producer.report_scrubbed(2)
    producer.report_scrubbed(1)
    with contextlib.suppress(JournalUnavailableError):
        while True:
            await producer.record(issued(plan_summary="z" * 1_500))
    for _ in range(3):
        producer.count_unrecorded(refused())
    journal = producer._journal
    beat = heartbeat_of(
        journal, producer._reports, now=system_clock(), limit_bytes=limit, closed=False
    )
    health = producer.health()
    assert (beat.gate_state, beat.gate_reason) == (GateState.CLOSED, "journal_full")
    assert not health.ready
    assert beat.last_sequence == beat.pending == health.pending == health.last_sequence > 100
    assert (beat.relayed_sequence, beat.journal_limit_bytes) == (0, limit)
    assert 0.7 < health.journal_fill <= 1
    assert beat.journal_bytes / limit == pytest.approx(health.journal_fill)
    assert beat.unrecorded_refusals == health.unrecorded_refusals == 3
    assert beat.scrubbed_values == health.scrubbed_values == 3
    assert beat.ledger_probe is health.ledger_probe is Probe.FAILING
    assert beat.ledger_probe_at == health.ledger_probe_at
    assert {reason.code for reason in health.reasons} >= {
        "journal_full",
        "journal_filling",
        "refusals_unrecorded",
        "ledger_failing",
    }
    began = time.monotonic()
    await producer.close(0.5)
    assert time.monotonic() - began < 20
