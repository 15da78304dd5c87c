"""What every EventRecorder promises, held against the one in memory and the one on disk."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from tests.producer.support import events_in, issued, journal_in, refused, settings_for, until

from approvaltrail.producer import Producer
from approvaltrail.producer.testing import MemoryRecorder
from approvaltrail.schemas.errors import RecorderUnavailableError
from approvaltrail.schemas.events import EventType, Reason
from approvaltrail.schemas.sanitise import event_from_untrusted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from approvaltrail.schemas.events import RecordedEvent
    from approvaltrail.schemas.recorder import EventRecorder


class Subject:
    """A recorder, a look at what it holds, and a way to make it unavailable."""

    recorder: EventRecorder

    def events(self) -> list[RecordedEvent]:
        raise NotImplementedError

    def fail(self) -> None:
        raise NotImplementedError

    def recover(self) -> None:
        raise NotImplementedError


class InMemory(Subject):
    def __init__(self) -> None:
        self.recorder = MemoryRecorder()

    def events(self) -> list[RecordedEvent]:
        return list(self.recorder.events)

    def fail(self) -> None:
        self.recorder.fail("journal full")

    def recover(self) -> None:
        self.recorder.recover()


class OnDisk(Subject):
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.recorder = Producer(settings_for(directory))
        self.recorder.start()

    def events(self) -> list[RecordedEvent]:
        return events_in(journal_in(self.directory))

    def fail(self) -> None:
        journal_in(self.directory).chmod(0o400)
        with pytest.raises(RecorderUnavailableError):
            self.recorder.record_sync(issued())

    def recover(self) -> None:
        journal_in(self.directory).chmod(0o600)


@pytest.fixture(params=["memory", "disk"])
async def subject(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Subject]:
    """One of the recorders."""
    if request.param == "memory":
        yield InMemory()
        return
    on_disk = OnDisk(tmp_path)
    yield on_disk
    await on_disk.recorder.close(0.3)


async def test_records_in_order_with_gapless_numbers(subject: Subject) -> None:
    """Events are kept in the order of their numbers, 1, 2, 3, …, each as it was given."""
    given = [issued(), refused(), issued(event_type=EventType.ACCEPTED)]
    recorded = [await subject.recorder.record(event) for event in given]
    assert [one.sequence for one in recorded] == [1, 2, 3]
    stored = subject.events()
    assert [event.event_id for event in stored] == [event.event_id for event in given]
    assert [event.recorded_at for event in stored] == [one.recorded_at for one in recorded]
    assert {event.producer_id for event in stored} == {one.producer_id for one in recorded}
    for event, before in zip(stored, given, strict=True):
        assert before.model_dump().items() <= event.model_dump().items()


async def test_threads_and_tasks(subject: Subject) -> None:
    """Threads and tasks may record at the same time; no number is given twice."""
    numbers: list[int] = []
    threads = [
        threading.Thread(
            target=lambda: numbers.extend(
                [subject.recorder.record_sync(issued()).sequence for _ in range(20)]
            )
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    tasks = [subject.recorder.record(issued()) for _ in range(30)]
    numbers += [one.sequence for one in await asyncio.gather(*tasks)]
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert sorted(numbers) == list(range(1, 91))


async def test_unavailable(subject: Subject) -> None:
    """While nothing can be recorded every way of asking says so, and nothing is kept."""
    await subject.recorder.record(issued())
    subject.recorder.check()
    subject.fail()
    with pytest.raises(RecorderUnavailableError) as caught:
        await subject.recorder.record(issued())
    assert caught.value.retriable
    with pytest.raises(RecorderUnavailableError):
        subject.recorder.record_sync(issued())
    with pytest.raises(RecorderUnavailableError):
        subject.recorder.check()
    assert len(subject.events()) == 1


async def test_counted_refusals(subject: Subject) -> None:
    """Refusals counted meanwhile become one event a reason afterwards, without their callers."""
    subject.fail()
    for reason in (Reason.BAD_SIGNATURE, Reason.BAD_SIGNATURE, Reason.EXPIRED):
        subject.recorder.count_unrecorded(refused(reason=reason, principal="somebody"))
    subject.recorder.recover() if isinstance(subject, InMemory) else subject.recover()
    await until(lambda: len(subject.events()) == 2, "the sums are recorded", 10)
    sums = {event.reason: dict(event.attributes)["count"] for event in subject.events()}
    assert sums == {Reason.BAD_SIGNATURE: "2", Reason.EXPIRED: "1"}
    assert {event.principal for event in subject.events()} == {None}
    assert {event.event_type for event in subject.events()} == {EventType.REFUSED}


async def test_hostile_refusals_are_recordable(subject: Subject) -> None:
    """What an attacker sends cannot make its own refusal unrecordable."""
    token = "at1." + "A" * 60 + "." + "b" * 43
    sanitised = event_from_untrusted(
        {
            "event_id": issued().event_id,
            "event_type": EventType.REFUSED,
            "occurred_at": datetime.now(UTC),
            "reason": Reason.MALFORMED_TOKEN,
            "tool": "x" * 10_000,
            "target": "\ud800" + token,
            "client_name": token,
            "peer_address": "not an address",
        }
    )
    await subject.recorder.record(sanitised.event)
    (stored,) = subject.events()
    assert token not in stored.model_dump_json()
    assert len(stored.tool) <= 128


async def test_memory_recorder_for_users() -> None:
    """The shipped recorder reads as its users' tests want it."""
    recorder = MemoryRecorder()
    await recorder.record(issued())
    with (
        recorder.unavailable("journal full"),
        pytest.raises(RecorderUnavailableError, match="journal full"),
    ):
        recorder.check()
    await recorder.record_many([refused(), issued(event_type=EventType.ACCEPTED)])
    assert recorder.events.types == ["issued", "refused", "accepted"]
    assert recorder.events.reasons == [None, "bad_signature", None]
    assert [event.sequence for event in recorder.events.of_type("refused")] == [2]
