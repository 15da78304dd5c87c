"""A journal that was copied: both copies go on recording."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest
from tests.chaos.oracle import completeness
from tests.chaos.recorder import new_event
from tests.consumers.parts import stored_ids
from tests.support.processes import wait_until

from approvaltrail.producer import Producer
from approvaltrail.store.answers import CompletenessState

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.world import World

BEFORE, AFTER = 50, 40


def recorded(world: World, directory: Path, count: int) -> tuple[str, set[str]]:
    """Record events with a producer of its own, deliver and close; say whose and which."""
    producer = Producer(world.producer_settings(directory))
    producer.start()
    events = [new_event() for _ in range(count)]
    owners = {producer.record_sync(event).producer_id for event in events}
    wait_until(lambda: not producer.health().pending, "delivered")
    assert producer.close_sync(20).pending == 0
    (owner,) = owners
    return owner, {event.event_id for event in events}


def copied(world: World, *, with_inode: bool) -> Path:
    """Copy the closed journal; `with_inode` as a disk's snapshot does, which keeps inodes."""
    directory = world.folder / "copy"
    shutil.copytree(world.journals, directory)
    if with_inode:
        (file,) = directory.glob("*.journal")
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute("UPDATE state SET inode = ?", (file.stat().st_ino,))
            connection.commit()
    return directory


@pytest.mark.timeout(120)
def test_a_journal_cloned_with_its_disk_is_found_by_completeness(world: World) -> None:
    """Two events under one number are a finding by name; both events are kept."""
    world.start_sink("one")
    owner, ids = recorded(world, world.journals, BEFORE)
    directory = copied(world, with_inode=True)
    original, more = recorded(world, world.journals, AFTER)
    clone, others = recorded(world, directory, AFTER)
    assert owner == original == clone, "nobody can tell the copy from the original by itself"
    with world.store() as store:
        wait_until(lambda: ids | more | others <= stored_ids(store), "every event is stored", 40)
        wait_until(
            lambda: completeness(store).state is CompletenessState.INCOMPLETE, "it says so", 20
        )
        answer = completeness(store)
        (status,) = answer.producers
        assert 0 < status.cloned_numbers <= AFTER
        assert any("two events" in reason for reason in answer.reasons)


@pytest.mark.timeout(120)
def test_a_copied_journal_file_is_not_written_on(world: World) -> None:
    """A copy that is known for one records under an id of its own: nothing is doubled."""
    world.start_sink("one")
    owner, ids = recorded(world, world.journals, BEFORE)
    directory = copied(world, with_inode=False)
    original, more = recorded(world, world.journals, AFTER)
    other, others = recorded(world, directory, AFTER)
    assert original == owner
    assert other != owner
    with world.store() as store:
        wait_until(lambda: ids | more | others <= stored_ids(store), "every event is stored", 40)
        wait_until(
            lambda: completeness(store).state is CompletenessState.COMPLETE, "it says so", 20
        )
        statuses = {status.producer_id: status for status in completeness(store).producers}
        assert {name: status.stored for name, status in statuses.items()} == {
            owner: BEFORE + AFTER,
            other: AFTER,
        }
        assert not any(status.cloned_numbers for status in statuses.values())
