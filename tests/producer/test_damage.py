"""Damage on the disk: intact events are sent, the file is kept, what is lost is declared."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog.testing
from tests.producer.support import (
    delivered_events,
    events_in,
    heartbeats,
    issued,
    journal_in,
    make_topics,
    settings_for,
    state_in,
    until,
)

from approvaltrail.producer import Producer
from approvaltrail.producer.lock import Hint, JournalLock
from approvaltrail.schemas.messages import Heartbeat, ProducerState

if TYPE_CHECKING:
    from collections.abc import Callable

    from approvaltrail.local.broker import BrokerProcess

PAGE = 4_096
COUNT = 400


def filled(directory: Path) -> Path:
    """Make a closed journal with undelivered events, all in its file."""
    producer = Producer(settings_for(directory))
    producer.start()
    for _ in range(COUNT):
        producer.record_sync(issued())
    producer.close_sync(0.3)
    return journal_in(directory)


def event_pages(file: Path) -> list[int]:
    """Find the leaf pages of the table of events, by their place in the file."""
    data = file.read_bytes()
    counts = {}
    for place in range(PAGE, len(data), PAGE):
        kind, cells = data[place], struct.unpack_from(">H", data, place + 3)[0]
        if kind == 0x0D and cells > 5:  # a table's leaf, see sqlite.org/fileformat2.html
            counts[place] = cells
    return sorted(counts)


def overwrite(file: Path, place: int, data: bytes) -> None:
    """Overwrite a part of a file."""
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(data)


async def delivered_with_loss(
    directory: Path, servers: str, prefix: str, old: str
) -> tuple[list[int], Heartbeat, list[dict[str, Any]]]:
    """Start on a damaged directory: what of the old journal arrives, and its last word."""
    await make_topics(servers, prefix)
    with structlog.testing.capture_logs() as logs:
        producer = Producer(settings_for(directory, servers, topic_prefix=prefix))
        producer.start()
    recorded = await producer.record(issued())
    assert recorded.producer_id != old

    def said(found: list[Heartbeat]) -> list[Heartbeat]:
        return [
            beat for beat in found if beat.producer_id == old and beat.state is ProducerState.CLOSED
        ]

    beats = said(await heartbeats(servers, prefix, said))
    arrived = await delivered_events(servers, prefix, 1)
    await until(lambda: producer.health().pending == 0, "all is delivered")
    arrived = await delivered_events(servers, prefix, beats[-1].last_sequence + 1 - lost(beats[-1]))
    assert "events_lost" in [reason.code for reason in producer.health().reasons] or not lost(
        beats[-1]
    )
    await producer.close(5)
    numbers = [event.sequence for event in arrived if event.producer_id == old]
    return numbers, beats[-1], logs


def lost(beat: Heartbeat) -> int:
    """How many numbers a heartbeat declares lost."""
    return sum(one.last_sequence - one.first_sequence + 1 for one in beat.lost_ranges)


def declared(beat: Heartbeat) -> set[int]:
    """Return the numbers that a heartbeat declares lost."""
    return {
        number
        for one in beat.lost_ranges
        for number in range(one.first_sequence, one.last_sequence + 1)
    }


def one_page_of_rubbish(file: Path) -> None:
    overwrite(file, event_pages(file)[3], b"\xa5" * PAGE)


def last_page_of_zeros(file: Path) -> None:
    overwrite(file, event_pages(file)[-1], bytes(PAGE))


@pytest.mark.parametrize("damage", [one_page_of_rubbish, last_page_of_zeros])
async def test_a_damaged_page(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str, damage: Callable[[Path], None]
) -> None:
    """P-03, P-04: every event around an unreadable page arrives; the page's are declared lost."""
    file = filled(tmp_path)
    old = state_in(file)["producer_id"]
    damage(file)
    damaged = file.read_bytes()
    numbers, last, logs = await delivered_with_loss(
        tmp_path, kafka.bootstrap_servers, topic_prefix, old
    )
    assert 0 < lost(last) < 40
    assert sorted({*numbers} | declared(last)) == list(range(1, COUNT + 1))
    assert not {*numbers} & declared(last)
    assert all(one.reason for one in last.lost_ranges)
    (said,) = [entry for entry in logs if entry["event"] == "journal_damaged"]
    assert said["journal"] == str(file)
    assert said["damage"]
    aside = await asyncio.to_thread(Path(said["set_aside_as"]).read_bytes)
    assert aside == damaged, "set aside as it was found"


async def test_an_empty_file(tmp_path: Path, kafka: BrokerProcess, topic_prefix: str) -> None:
    """P-03: a journal cut to nothing does not stop the start; its known numbers are a named gap."""
    file = filled(tmp_path)
    old = state_in(file)["producer_id"]
    file.write_bytes(b"")
    numbers, last, logs = await delivered_with_loss(
        tmp_path, kafka.bootstrap_servers, topic_prefix, old
    )
    assert numbers == []
    assert declared(last) == set(range(1, COUNT + 1))
    assert last.last_sequence == COUNT
    assert "empty" in next(entry["damage"] for entry in logs if "damage" in entry)


async def test_no_database_at_all(tmp_path: Path, kafka: BrokerProcess, topic_prefix: str) -> None:
    """P-03: a file that is no database any more is set aside and its numbers are declared."""
    file = filled(tmp_path)
    old = state_in(file)["producer_id"]
    overwrite(file, 0, b"not a database at all" * 400)
    _, last, _ = await delivered_with_loss(tmp_path, kafka.bootstrap_servers, topic_prefix, old)
    assert declared(last) == set(range(1, COUNT + 1))


CRASH = """
import os, sys
from pathlib import Path
from approvaltrail.producer import Producer
from tests.producer.support import issued, settings_for
producer = Producer(
    settings_for(Path(sys.argv[1]), seal_seconds=3_000, journal_checkpoint_pages=10_000)
)
producer.start()
for _ in range(60):
    producer.record_sync(issued())
producer._journal.write_hint()
os.kill(os.getpid(), 9)
"""


def crashed(directory: Path) -> Path:
    """Make a journal whose events stand in the write-ahead log alone, after a SIGKILL."""
    subprocess.run([sys.executable, "-c", CRASH, str(directory)], check=False, timeout=60)
    return journal_in(directory)


async def test_a_cut_log(tmp_path: Path, kafka: BrokerProcess, topic_prefix: str) -> None:
    """P-03: a truncated log is noticed; its numbers are not given twice, the rest arrives."""
    file = crashed(tmp_path)
    wal = file.with_name(f"{file.name}-wal")
    with wal.open("r+b") as opened:
        opened.truncate(wal.stat().st_size * 2 // 3)
    old = file.name.split(".")[1]
    numbers, last, _ = await delivered_with_loss(
        tmp_path, kafka.bootstrap_servers, topic_prefix, old
    )
    assert 20 < len(numbers) < 60
    assert sorted({*numbers} | declared(last)) == list(range(1, 61))


def test_a_torn_tail(tmp_path: Path) -> None:
    """P-04: a transaction cut short by a crash is recognised as such, and every record is there."""
    file = crashed(tmp_path)
    wal = file.with_name(f"{file.name}-wal")
    data = wal.read_bytes()
    last_frame = data[-(PAGE + 24) :]
    torn = last_frame[:4] + bytes(4) + last_frame[8:2_000]  # no commit mark, and cut off
    wal.write_bytes(data + torn)
    with structlog.testing.capture_logs() as logs:
        producer = Producer(settings_for(tmp_path))
        producer.start()
    assert producer.record_sync(issued()).sequence == 61
    producer.close_sync(0.3)
    (said,) = [entry for entry in logs if entry["event"] == "journal_resumed"]
    assert said["torn_frames"] == 1
    assert "nobody was told" in said["discarded"]
    assert [event.sequence for event in events_in(file)] == list(range(1, 62))


async def test_one_changed_event(tmp_path: Path, kafka: BrokerProcess, topic_prefix: str) -> None:
    """P-05: an event whose bytes have changed is isolated and declared; the rest is relayed."""
    servers = kafka.bootstrap_servers
    file = filled(tmp_path)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        body = connection.execute("SELECT body FROM events WHERE sequence = 7").fetchone()[0]
        connection.execute(
            "UPDATE events SET body = ? WHERE sequence = 7", (body[:-1] + bytes([body[-1] ^ 1]),)
        )
        connection.commit()
    await make_topics(servers, topic_prefix)
    producer = Producer(settings_for(tmp_path, servers, topic_prefix=topic_prefix))
    producer.start()
    events = await delivered_events(servers, topic_prefix, COUNT - 1)
    assert [event.sequence for event in events] == [*range(1, 7), *range(8, COUNT + 1)]
    await until(lambda: producer.health().pending == 0, "the position has passed it")
    isolated = producer.metrics.registry.get_sample_value(
        "approvaltrail_producer_isolated_events_total", {"cause": "damaged"}
    )
    assert isolated == 1
    assert (await producer.close(5)).in_time
    beats = await heartbeats(
        servers, topic_prefix, lambda found: found and declared(found[-1]) == {7}
    )
    assert beats[-1].last_sequence == COUNT
    again = Producer(settings_for(tmp_path))
    again.start()
    assert "events_lost" in [reason.code for reason in again.health().reasons]
    await again.close(0.3)


def test_a_salvage_cut_short_is_done_again(tmp_path: Path) -> None:
    """A crash in the middle of a salvage loses nothing: the next start does it again."""
    file = filled(tmp_path)
    one_page_of_rubbish(file)
    half = file.with_name(f"{file.name}.salvaged")
    half.write_bytes(b"half")
    producer = Producer(settings_for(tmp_path))
    producer.start()
    assert producer.health().pending > COUNT - 40
    producer.close_sync(0.3)
    assert not half.exists()


def test_the_hint_is_behind_and_survives_nonsense(tmp_path: Path) -> None:
    """The hint in the lock's file is read back, and nonsense in it means that nothing is known."""
    lock = JournalLock.acquire(tmp_path / "x.lock")
    assert lock.hint() == Hint()
    lock.write_hint(Hint(last_sequence=12, relayed_sequence=3))
    assert JournalLock.hint_of(tmp_path / "x.lock") == Hint(last_sequence=12, relayed_sequence=3)
    lock.release()
    (tmp_path / "x.lock").write_bytes(b"\xff\x00 nonsense")
    assert JournalLock.hint_of(tmp_path / "x.lock") == Hint()
