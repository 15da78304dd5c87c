"""Seals: every event comes under a root, roots chain, and any change shows."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import sys
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from tests.producer.support import bodies_in, issued, journal_in, settings_for, until

from approvaltrail.producer import Producer
from approvaltrail.producer.delivery import Delivery
from approvaltrail.producer.metrics import RelayMetrics
from approvaltrail.producer.progress import Progress
from approvaltrail.producer.seals import NO_SEAL, Sealed, Sealer, seal_digest, verify_seals
from approvaltrail.producer.state import JournalState
from approvaltrail.schemas.identity import new_producer_id
from approvaltrail.schemas.messages import Seal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import FrameType

    from _typeshed import TraceFunction


def seals_in(file: Path) -> list[bytes]:
    """Return the encoded seals of a journal's file."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return [row[0] for row in connection.execute("SELECT body FROM seals ORDER BY number")]


def faults(seals: list[bytes], bodies: list[bytes]) -> list[tuple[int, str]]:
    """Return what the verifier finds."""

    def between(first: int, last: int) -> Sequence[bytes]:
        return bodies[first - 1 : last]

    return [(fault.seal_number, fault.problem) for fault in verify_seals(seals, between)]


async def sealed(directory: Path, counts: Sequence[int]) -> Path:
    """Make a journal with a restart between parts of so many events."""
    for count in counts:
        producer = Producer(settings_for(directory, seal_events=50))
        producer.start()
        for _ in range(count):
            await producer.record(issued())
        await producer.close(1)
    return journal_in(directory)


async def test_seals_cover_every_event_and_chain(tmp_path: Path) -> None:
    """After a close every event is sealed once, across restarts, and every root is recomputed."""
    file = await sealed(tmp_path, [70, 1, 0, 49])
    seals = [Seal.decode(encoded) for encoded in seals_in(file)]
    assert seals[0].first_sequence == 1
    assert seals[-1].last_sequence == 120
    assert all(
        later.first_sequence == earlier.last_sequence + 1
        for earlier, later in itertools.pairwise(seals)
    )
    assert [seal.seal_number for seal in seals] == list(range(1, len(seals) + 1))
    assert seals[0].previous_seal_digest == NO_SEAL
    assert seals[1].previous_seal_digest == seal_digest(seals_in(file)[0])
    assert faults(seals_in(file), bodies_in(file)) == []


async def test_quiet_journals_are_sealed_in_time(tmp_path: Path) -> None:
    """A single event, followed by silence, is sealed within the time."""
    producer = Producer(settings_for(tmp_path, seal_seconds=0.2))
    producer.start()
    await producer.record(issued())
    await until(lambda: len(seals_in(journal_in(tmp_path))) == 1, "the event is sealed", 5)
    await producer.close(1)


async def test_a_crash_leaves_nothing_unsealed(tmp_path: Path) -> None:
    """Events recorded before a crash, and not sealed, come under the next seal."""
    producer = Producer(settings_for(tmp_path, seal_seconds=3_000))
    producer.start()
    for _ in range(30):
        await producer.record(issued())
    copy = tmp_path / "copy"
    copy.mkdir()
    await producer.close(1)
    file = journal_in(tmp_path)
    with contextlib.closing(sqlite3.connect(file)) as connection:  # as before the last seal
        connection.execute("DELETE FROM seals")
        connection.execute(
            "UPDATE state SET seal_number = 0, sealed_sequence = 0, seal_digest = ?", (NO_SEAL,)
        )
        connection.commit()
    file = await sealed(tmp_path, [5])
    assert Seal.decode(seals_in(file)[-1]).last_sequence == 35
    assert faults(seals_in(file), bodies_in(file)) == []


async def test_any_change_is_found(tmp_path: Path) -> None:
    """S-17: a changed byte, a missing or swapped event, and a dropped seal are all named."""
    file = await sealed(tmp_path, [120])
    seals, bodies = seals_in(file), bodies_in(file)
    assert len(seals) > 2
    changed = [*bodies]
    changed[60] = changed[60][:-1] + bytes([changed[60][-1] ^ 1])
    second = next(
        seal.seal_number
        for seal in map(Seal.decode, seals)
        if seal.first_sequence <= 61 <= seal.last_sequence
    )
    assert faults(seals, changed) == [(second, "its root differs from its events")]
    swapped = [bodies[1], bodies[0], *bodies[2:]]
    assert (1, "its root differs from its events") in faults(seals, swapped)
    assert faults(seals, bodies[:-1])[-1][1] == "its root differs from its events"
    without = seals[:1] + seals[2:]
    assert "it does not name the seal before it" in [
        problem for _, problem in faults(without, bodies)
    ]


class SealingMeanwhile:
    """A journal whose second seal is damaged, and that seals a third while the relay looks."""

    producer_id = "p"

    def __init__(self) -> None:
        state = JournalState(
            producer_id="p", service="s", instance="i", machine="m", inode=1, created_at=0
        )
        self.progress = Progress(state, ())
        self.progress.advance(20)
        self.progress.advance_seal(1)
        self.last_sequence = 20
        self.sealed = Sealed(2, 20)
        self.stored = [(1, 10, b"first")]

    def reader(self) -> SealingMeanwhile:
        return self

    def seals(self, after: int, last_sequence: int, limit: int) -> list[tuple[int, bytes]]:
        found = [
            (number, body)
            for number, last, body in self.stored
            if number > after and last <= last_sequence
        ][:limit]
        if self.sealed.number == 2:
            self.stored.append((3, 30, b"third"))
            self.sealed, self.last_sequence = Sealed(3, 30), 30
            self.progress.advance(30)
        return found


class Messages:
    """A link that remembers what it was given."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def send_messages(self, topic: str, key: str, values: Sequence[bytes]) -> None:
        self.sent += values


async def test_a_seal_made_while_the_relay_looks_is_not_passed_over() -> None:
    """What the relay passes over is what it saw lacking, never what came in the meantime."""
    journal, link = SealingMeanwhile(), Messages()
    delivery = Delivery(journal, RelayMetrics(CollectorRegistry()), 100)  # type: ignore[arg-type]
    await delivery._send_seals(link)  # type: ignore[arg-type]
    assert (journal.progress.relayed_seal, link.sent) == (2, [])
    await delivery._send_seals(link)  # type: ignore[arg-type]
    assert (journal.progress.relayed_seal, link.sent) == (3, [b"third"])


def test_other_threads_never_see_half_a_seal() -> None:
    """At no line of a seal's confirmation do number and range belong to different seals."""
    state = JournalState(
        producer_id=new_producer_id(), service="s", instance="i", machine="m", inode=1, created_at=0
    )
    sealer = Sealer(state, events=1_000, seconds=5, clock=lambda: 0)
    seen: set[tuple[int, int]] = set()

    def look(frame: FrameType, event: str, argument: object) -> TraceFunction:
        seen.add(tuple(sealer.sealed))
        return look

    for number in range(1, 4):
        sealer.add([b"event"] * 10)
        seal = sealer.ready()
        before = sys.gettrace()
        sys.settrace(look)
        try:
            sealer.confirm(seal)
        finally:
            sys.settrace(before)
        assert seen <= {(number - 1, 10 * (number - 1)), (number, 10 * number)}
        seen.clear()
