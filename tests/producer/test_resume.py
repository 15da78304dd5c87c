"""A start resumes what is there: its own journal, those left behind, and another machine's."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.producer.support import (
    delivered_events,
    events_in,
    heartbeats,
    issued,
    journal_in,
    journals_in,
    make_topics,
    settings_for,
    state_in,
)

from approvaltrail.producer import JournalDirectoryError, JournalVersionError, Producer
from approvaltrail.producer.directory import (
    JournalDirectory,
    file_system_of,
    refuse_undurable,
    service_slug,
)
from approvaltrail.schemas.messages import ProducerState

if TYPE_CHECKING:
    from approvaltrail.local.broker import BrokerProcess


def record(directory: Path, count: int, **values: Any) -> Path:
    """Record so many events with no broker; return the journal's file."""
    producer = Producer(settings_for(directory, **values))
    producer.start()
    for _ in range(count):
        producer.record_sync(issued())
    file = producer._journal.path.file
    producer.close_sync(0.3)
    return file


def change_state(file: Path, **values: Any) -> None:
    """Write into a journal's state row."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        for name, value in values.items():
            connection.execute(f"UPDATE state SET {name} = ?", (value,))
        connection.commit()


def test_each_process_has_its_own_journal(tmp_path: Path) -> None:
    """Two producers of one service at once have two journals; starts take both up again."""
    first, second = (Producer(settings_for(tmp_path)) for _ in range(2))
    first.start()
    second.start()
    first.record_sync(issued())
    second.record_sync(issued())
    assert len(journals_in(tmp_path)) == 2
    identities = {producer._journal.producer_id for producer in (first, second)}
    first.close_sync(0.3)
    second.close_sync(0.3)
    third = Producer(settings_for(tmp_path))
    third.start()
    assert third._journal.producer_id in identities
    assert third.record_sync(issued()).sequence == 2
    third.close_sync(0.3)
    assert len(journals_in(tmp_path)) == 2


def test_services_do_not_take_each_others_journals(tmp_path: Path) -> None:
    """A journal is resumed by its own service only, however similar the names are."""
    for service in ("a/b", "a:b", "a_b"):
        record(tmp_path, 1, service=service)
    assert len({service_slug(service) for service in ("a/b", "a:b", "a_b")}) == 3
    assert len(journals_in(tmp_path)) == 3
    assert {event.service for file in journals_in(tmp_path) for event in events_in(file)} == {
        "a/b",
        "a:b",
        "a_b",
    }


async def test_journals_left_behind_are_sent_on(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str
) -> None:
    """With fewer processes than before, what the others left is delivered and said to be closed."""
    servers = kafka.bootstrap_servers
    first, second = (Producer(settings_for(tmp_path)) for _ in range(2))
    first.start()
    second.start()
    for producer in (first, second):
        for _ in range(10):
            producer.record_sync(issued())
    other = second._journal.producer_id
    first.close_sync(0.3)
    second.close_sync(0.3)
    await make_topics(servers, topic_prefix)
    third = Producer(settings_for(tmp_path, servers, topic_prefix=topic_prefix))
    third.start()
    events = await delivered_events(servers, topic_prefix, 20)
    assert [event.sequence for event in events] == [*range(1, 11), *range(1, 11)]
    beats = await heartbeats(
        servers,
        topic_prefix,
        lambda found: [
            beat
            for beat in found
            if beat.producer_id == other and beat.state is ProducerState.CLOSED
        ],
    )
    closed = next(beat for beat in beats if beat.state is ProducerState.CLOSED)
    assert (closed.last_sequence, closed.pending) == (10, 0)
    await third.close(5)
    assert third.health().live is False


@pytest.mark.parametrize("how", ["copied", "other machine"])
async def test_a_foreign_journal_is_drained_and_not_continued(
    tmp_path: Path, kafka: BrokerProcess, topic_prefix: str, how: str
) -> None:
    """A journal from elsewhere is sent on under its own id and closed; a new id begins."""
    servers = kafka.bootstrap_servers
    file = record(tmp_path, 10)
    old = state_in(file)["producer_id"]
    if how == "copied":
        shutil.copy(file, tmp_path / "copy")
        file.rename(tmp_path / "original")
        (tmp_path / "copy").rename(file)
    else:
        change_state(file, machine="another")
    await make_topics(servers, topic_prefix)
    producer = Producer(settings_for(tmp_path, servers, topic_prefix=topic_prefix))
    producer.start()
    recorded = await producer.record(issued())
    assert recorded.sequence == 1
    assert recorded.producer_id != old
    events = await delivered_events(servers, topic_prefix, 11)
    assert [event.sequence for event in events if event.producer_id == old] == list(range(1, 11))
    beats = await heartbeats(
        servers,
        topic_prefix,
        lambda found: {beat.producer_id for beat in found if _closed(beat)} >= {old},
    )
    new = [beat for beat in beats if beat.producer_id == recorded.producer_id]
    assert {beat.previous_producer_id for beat in new} <= {old}
    await producer.close(5)
    again = Producer(settings_for(tmp_path, servers, topic_prefix=topic_prefix))
    again.start()
    assert (await again.record(issued())).producer_id == recorded.producer_id
    await again.close(5)


def _closed(beat: Any) -> bool:
    return beat.state is ProducerState.CLOSED


def test_finished_journals_are_removed_after_their_retention(tmp_path: Path) -> None:
    """A retired journal that is delivered is removed when it is past its retention, not before."""
    file = record(tmp_path, 3)
    state = state_in(file)
    change_state(file, retired=1, relayed_sequence=3, relayed_seal=state["seal_number"])
    record(tmp_path, 1, journal_retention_hours=1)
    assert file.exists()
    record(tmp_path, 1, journal_retention_hours=0)
    assert not file.exists()
    assert list(tmp_path.glob(f"{file.name}*")) == []


def test_a_start_that_fails_leaves_the_journal_alone(tmp_path: Path) -> None:
    """P-06: a journal of a newer version stops the start by name and keeps its rows."""
    file = record(tmp_path, 5)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(JournalVersionError, match="layout 99"):
        Producer(settings_for(tmp_path)).start()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 1")
    assert record(tmp_path, 1) == file
    assert [event.sequence for event in events_in(file)] == [1, 2, 3, 4, 5, 6]


def test_an_unfinished_creation_is_finished(tmp_path: Path) -> None:
    """A crash while a journal was being made leaves an empty file: the next start uses it."""
    file = record(tmp_path, 1)
    for part in tmp_path.iterdir():
        part.unlink()
    file.touch()
    assert record(tmp_path, 2) == file
    assert len(events_in(file)) == 2
    assert list(tmp_path.glob("*damaged*")) == []


def test_memory_and_network_file_systems_are_refused(tmp_path: Path) -> None:
    """A directory in memory or on a network is refused by name, and allowed by name."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
        "2 1 0:5 / /mnt/with\\040space rw shared:7 - nfs4 server:/x rw\n"
        "3 1 0:6 / /dev/shm rw - tmpfs tmpfs rw\n"
    )
    assert file_system_of(Path("/srv/journals"), mounts) == "ext4"
    assert file_system_of(Path("/mnt/with space/journals"), mounts) == "nfs4"
    assert file_system_of(Path("/dev/shm/journals"), mounts) == "tmpfs"
    with pytest.raises(JournalDirectoryError, match="ALLOWED_FILE_SYSTEMS=nfs4"):
        refuse_undurable(tmp_path, "nfs4", frozenset())
    refuse_undurable(tmp_path, "nfs4", frozenset({"nfs4"}))
    refuse_undurable(tmp_path, None, frozenset())


@pytest.mark.skipif(
    not Path("/dev/shm").is_dir() or file_system_of(Path("/dev/shm")) != "tmpfs",
    reason="there is no tmpfs at /dev/shm",
)
def test_a_real_tmpfs_is_refused() -> None:
    """A start on a real tmpfs fails and names the setting that would allow it."""
    directory = Path("/dev/shm/approvaltrail-test")
    try:
        with pytest.raises(JournalDirectoryError, match="tmpfs"):
            Producer(settings_for(directory)).start()
        allowed = settings_for(directory, journal_allowed_file_systems="tmpfs, nfs4")
        producer = Producer(allowed)
        producer.start()
        producer.record_sync(issued())
        producer.close_sync(0.3)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def test_a_directory_that_is_a_file(tmp_path: Path) -> None:
    """A journal directory that cannot be one is refused with what to set."""
    (tmp_path / "file").touch()
    with pytest.raises(JournalDirectoryError, match="APPROVALTRAIL_JOURNAL_DIR"):
        JournalDirectory(tmp_path / "file" / "below").prepare(frozenset())


def test_numbering_goes_on_with_another_instance_name(tmp_path: Path) -> None:
    """A renamed instance resumes the journal and stamps its own name from then on."""
    record(tmp_path, 1, instance="old")
    record(tmp_path, 1, instance="new")
    events = events_in(journal_in(tmp_path))
    assert [(event.sequence, event.instance) for event in events] == [(1, "old"), (2, "new")]
