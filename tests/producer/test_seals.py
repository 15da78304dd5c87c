"""Seals: every event comes under a root, roots chain, and any change shows."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from typing import TYPE_CHECKING

from tests.producer.support import bodies_in, issued, journal_in, settings_for, until

from approvaltrail.producer import Producer
from approvaltrail.producer.seals import NO_SEAL, seal_digest, verify_seals
from approvaltrail.schemas.messages import Seal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


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
