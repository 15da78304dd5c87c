"""The journal's bound: who may write how far, what is said at the bound, and how it recovers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from tests.producer.support import (
    events_in,
    issued,
    journal_in,
    refused,
    settings_for,
    state_in,
    until,
)

from approvaltrail.producer import JournalUnavailableError, Producer
from approvaltrail.producer.errors import Cause
from approvaltrail.schemas.events import EventType

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1024 * 1024


async def fill(producer: Producer, build: Any) -> int:
    """Record until the journal refuses; return how many were taken."""
    return (await filled(producer, build))[0]


async def filled(producer: Producer, build: Any) -> tuple[int, JournalUnavailableError]:
    """Record until the journal refuses; return how many were taken, and the refusal."""
    taken = 0
    while True:
        try:
            await producer.record(build(plan_summary="z" * 1_500))
        except JournalUnavailableError as error:
            return taken, error
        taken += 1


async def test_unverified_refusals_leave_room_for_the_gate(tmp_path: Path) -> None:
    """A flood of unverified refusals fills its share of the journal; verified tokens go on."""
    producer = Producer(settings_for(tmp_path, journal_limit_bytes=2 * MIB))
    producer.start()
    flood, refusal = await filled(producer, refused)
    assert flood > 100
    assert refusal.cause is Cause.UNVERIFIED_SHARE
    assert "rest for verified" in str(refusal)
    producer.check()
    assert (await producer.record(issued())).sequence == flood + 1
    more = await fill(producer, issued)
    assert more > 20
    with pytest.raises(JournalUnavailableError, match="JOURNAL_LIMIT") as caught:
        producer.check()
    assert caught.value.cause is Cause.FULL
    health = producer.health()
    assert (health.live, health.ready) == (True, False)
    assert "journal_full" in [reason.code for reason in health.reasons]
    journal = producer._journal
    await until(lambda: journal.sealed.sequence == flood + 1 + more, "seals find room as well")
    await producer.close(1)
    file = journal_in(tmp_path)
    assert file.stat().st_size <= 2 * MIB
    assert len(events_in(file)) == flood + 1 + more
    assert state_in(file)["sealed_sequence"] == flood + 1 + more


async def test_check_asks_for_room_before_anything_is_claimed(tmp_path: Path) -> None:
    """After check has refused there is still room to record what earlier checks let through."""
    producer = Producer(settings_for(tmp_path, journal_limit_bytes=2 * MIB))
    producer.start()
    with contextlib.suppress(JournalUnavailableError):
        while True:
            producer.check()
            await producer.record(issued(plan_summary="z" * 1_500))
    for _ in range(20):
        await producer.record(issued())
    await producer.close(1)


async def test_counted_refusals_are_recorded_in_sum(tmp_path: Path) -> None:
    """Refusals counted while there was no room become one event a reason when there is room."""
    producer = Producer(settings_for(tmp_path, journal_limit_bytes=2 * MIB))
    producer.start()
    await fill(producer, issued)
    for _ in range(50_000):
        producer.count_unrecorded(EVENT)
    assert producer.health().unrecorded_refusals == 50_000
    make_room(producer)
    await until(lambda: producer.health().unrecorded_refusals == 0, "the sum is recorded")
    await producer.close(1)
    (summed,) = [
        event for event in events_in(journal_in(tmp_path)) if event.event_type is EventType.REFUSED
    ]
    said = dict(summed.attributes)
    assert (said["count"], said["unrecorded_sum"]) == ("50000", "true")
    assert summed.reason is EVENT.reason
    assert summed.tool == EVENT.tool


EVENT = refused()


def make_room(producer: Producer) -> None:
    """Do what the relay does when the broker has acknowledged everything."""
    journal = producer._journal
    assert journal is not None
    journal.progress.advance(journal.last_sequence)


async def test_delivered_events_make_room(tmp_path: Path) -> None:
    """A full journal takes events again, without a restart, once the broker has acknowledged."""
    producer = Producer(settings_for(tmp_path, journal_limit_bytes=2 * MIB))
    producer.start()
    taken = await fill(producer, issued)
    make_room(producer)

    def open_again() -> bool:
        return producer.health().ready

    await until(open_again, "the journal has room")
    assert (await producer.record(issued())).sequence == taken + 1
    await producer.close(1)


async def test_deleting_delivered_events_does_not_restart_the_count(tmp_path: Path) -> None:
    """The numbering survives the deletion of every delivered event, and a restart after it."""
    values = {"journal_retention_hours": 0.0, "journal_limit_bytes": 2 * MIB}
    producer = Producer(settings_for(tmp_path, **values))
    producer.start()
    taken = await fill(producer, issued)
    await until(lambda: producer._journal.sealed.sequence == taken, "all events are sealed")
    make_room(producer)
    await until(lambda: producer._journal.oldest_sequence == 0, "all delivered events are gone")
    await producer.close(1)
    assert events_in(journal_in(tmp_path)) == []
    again = Producer(settings_for(tmp_path, **values))
    again.start()
    assert (await again.record(issued())).sequence == taken + 1
    await again.close(1)


async def test_undelivered_events_are_never_deleted(tmp_path: Path) -> None:
    """Age and pressure delete what the broker has acknowledged, and nothing else."""
    values = {"journal_retention_hours": 0.0, "journal_limit_bytes": 2 * MIB}
    producer = Producer(settings_for(tmp_path, **values))
    producer.start()
    taken = await fill(producer, issued)
    producer._journal.progress.advance(10)
    await until(lambda: producer._journal.oldest_sequence == 11, "ten events are gone")
    await producer.close(1)
    numbers = [event.sequence for event in events_in(journal_in(tmp_path))]
    assert numbers == list(range(11, taken + 1))
