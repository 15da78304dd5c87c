"""Recording: durable, numbered without gaps, from coroutines and threads alike."""

from __future__ import annotations

import asyncio
import stat
import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tests.producer.support import (
    bodies_in,
    events_in,
    issued,
    journal_in,
    refused,
    settings_for,
    until,
)

from approvaltrail.producer import NotStartedError, Producer
from approvaltrail.producer.errors import Cause, EventTooLargeError, JournalUnavailableError
from approvaltrail.producer.stamping import Stamper
from approvaltrail.producer.state import JournalState
from approvaltrail.schemas.encoding import encode_event, microseconds, producer_stamp, stamp

if TYPE_CHECKING:
    from pathlib import Path


async def test_recorded_events_are_in_the_file(tmp_path: Path) -> None:
    """When record returns, another program reads the event from the journal's file."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    event = issued()
    recorded = await producer.record(event)
    (stored,) = events_in(journal_in(tmp_path))
    assert stored.event_id == event.event_id
    assert (stored.producer_id, stored.sequence) == (recorded.producer_id, recorded.sequence)
    assert (stored.service, stored.instance) == ("tidb-mcp", "pod-1")
    assert stored.recorded_at == recorded.recorded_at
    await producer.close(1)


async def test_threads_and_coroutines_share_one_numbering(tmp_path: Path) -> None:
    """Events of many threads, coroutines and groups are numbered 1, 2, 3, … without gaps."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    numbers: list[int] = []

    def in_thread() -> None:
        numbers.extend(producer.record_sync(issued()).sequence for _ in range(50))

    async def in_loop() -> None:
        numbers.extend([(await producer.record(issued())).sequence for _ in range(50)])

    async def in_groups() -> None:
        for _ in range(5):
            group = await producer.record_many([issued() for _ in range(20)])
            places = [one.sequence for one in group]
            assert places == list(range(places[0], places[0] + 20))
            numbers.extend(places)

    threads = [threading.Thread(target=in_thread) for _ in range(4)]
    for thread in threads:
        thread.start()
    await asyncio.gather(*[in_loop() for _ in range(8)], in_groups())
    await asyncio.to_thread(lambda: [thread.join() for thread in threads])
    assert sorted(numbers) == list(range(1, 701))
    stored = events_in(journal_in(tmp_path))
    assert [event.sequence for event in stored] == list(range(1, 701))
    times = [event.recorded_at for event in stored]
    assert times == sorted(times)
    await producer.close(1)


async def test_times_never_decrease(tmp_path: Path) -> None:
    """When the system's clock is set back, recorded_at stands still and does not decrease."""
    times = iter([5_000_000, 4_000_000, 6_000_000])
    state = JournalState(
        producer_id="0" * 8, service="s", instance="i", machine="m", inode=1, created_at=0
    )
    stamper = Stamper(state, lambda: next(times))
    seen = []
    for _ in range(3):
        stamped = stamper.stamp([(None, b"x")])
        stamper.confirm(stamped)
        seen.append(stamped.recorded_at)
    assert seen == [5_000_000, 5_000_000, 6_000_000]


def test_a_batch_is_stamped_as_the_contract_says() -> None:
    """The writer's stamp is byte for byte the contract's."""
    state = JournalState(
        producer_id="a-b",
        service="s",
        instance="i",
        machine="m",
        inode=1,
        created_at=0,
        last_sequence=126,
    )
    stamped = Stamper(state, lambda: 1_700_000_000_123_456).stamp([(None, b"T")] * 3)
    own = producer_stamp("a-b", "s", "i")
    assert stamped.bodies == [
        stamp(number, 1_700_000_000_123_456, own) + b"T" for number in (127, 128, 129)
    ]


async def test_files_are_private(tmp_path: Path) -> None:
    """The directory and every file in it belong to this user alone."""
    directory = tmp_path / "journals"
    producer = Producer(settings_for(directory))
    producer.start()
    await producer.record(issued())
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    await producer.close(1)


async def test_use_before_start_and_after_close(tmp_path: Path) -> None:
    """P-10: use before start, or after close, raises a named error at once."""
    producer = Producer(settings_for(tmp_path))
    for _ in range(2):
        with pytest.raises(NotStartedError, match="start"):
            await asyncio.wait_for(producer.record(issued()), 1)
        with pytest.raises(NotStartedError):
            producer.record_sync(issued())
        with pytest.raises(NotStartedError):
            producer.check()
        with pytest.raises(NotStartedError):
            producer.count_unrecorded(refused())
        assert not producer.health().live
        producer.start()
        await producer.close(1)


async def test_a_cancelled_caller_disturbs_nobody(tmp_path: Path) -> None:
    """A caller that gives up does not keep others from being answered."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    tasks = [asyncio.create_task(producer.record(issued())) for _ in range(40)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(not isinstance(result, Exception) for result in results[1::2])
    numbers = [event.sequence for event in events_in(journal_in(tmp_path))]
    assert numbers == list(range(1, len(numbers) + 1))
    await producer.close(1)


async def test_too_large_an_event(tmp_path: Path) -> None:
    """S-07: an event beyond the bound is refused with its size and the limit, others are not."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    wide = "\U0001f512"
    largest = issued(
        plan_summary=wide * 2_000,
        target=wide * 512,
        tenant=wide * 256,
        principal=wide * 256,
        attributes=tuple((f"{n:02}" + wide * 62, wide * 256) for n in range(16)),
    )
    assert (await producer.record(largest)).sequence == 1
    unchecked = issued().model_copy(update={"plan_summary": "x" * 2_000_000})
    with pytest.raises(EventTooLargeError, match=r"2000\d{3} bytes, the bound is \d+"):
        await producer.record(unchecked)
    with pytest.raises(EventTooLargeError):
        await producer.record_many([issued(), unchecked])
    assert (await producer.record(issued())).sequence == 2
    await producer.close(1)


async def test_the_bound_to_the_byte(tmp_path: Path) -> None:
    """S-07: an event of exactly the limit is recorded, one of one byte more is refused."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    event = issued()
    with pytest.raises(EventTooLargeError, match="bound is") as caught:
        await producer.record(event.model_copy(update={"plan_summary": "x" * 100_000}))
    bound = int(str(caught.value).split("bound is ")[1].split(";")[0])

    def of_size(size: int) -> object:
        text = "x" * (size - len(encode_event(event)))
        fits = event.model_copy(update={"plan_summary": text})
        while len(encode_event(fits)) > size:
            text = text[:-1]
            fits = event.model_copy(update={"plan_summary": text})
        assert len(encode_event(fits)) == size
        return fits

    assert (await producer.record(of_size(bound))).sequence == 1
    with pytest.raises(EventTooLargeError):
        await producer.record(of_size(bound + 1))
    await producer.close(1)


async def test_events_after_a_close(tmp_path: Path) -> None:
    """A restart in order goes on with the same journal and the next number."""
    for expected in (1, 2, 3):
        async with Producer(settings_for(tmp_path)) as producer:
            producer.settings  # noqa: B018
            recorded = await producer.record(issued())
            assert recorded.sequence == expected
            await producer.close(0.5)
    assert len(bodies_in(journal_in(tmp_path))) == 3


async def test_a_full_queue(tmp_path: Path) -> None:
    """What waits for the writer is bounded: beyond the bound recording fails at once."""
    producer = Producer(settings_for(tmp_path, queue_limit_bytes=1024 * 1024))
    producer.start()
    many = [issued(plan_summary="y" * 2_000) for _ in range(1_000)]
    with pytest.raises(JournalUnavailableError, match="QUEUE_LIMIT") as caught:
        await producer.record_many(many)
    assert caught.value.cause is Cause.OVERLOADED
    assert (await producer.record(issued())).sequence == 1
    await producer.close(1)


async def test_seconds_apart_are_not_lost(tmp_path: Path) -> None:
    """The event's own time and the journal's are both kept to the microsecond."""
    producer = Producer(settings_for(tmp_path), clock=lambda: 1_800_000_000_123_457)
    producer.start()
    event = issued()
    recorded = await producer.record(event)
    assert microseconds(recorded.recorded_at) == 1_800_000_000_123_457
    (stored,) = events_in(journal_in(tmp_path))
    assert stored.occurred_at == event.occurred_at
    assert stored.recorded_at - recorded.recorded_at == timedelta(0)
    await producer.close(1)


async def test_lifespan(tmp_path: Path) -> None:
    """A server's lifespan starts the producer and closes it with the server."""
    producer = Producer(settings_for(tmp_path))
    async with producer.lifespan(object()):
        await producer.record(issued())
        await until(lambda: producer.health().live, "the producer lives")
        assert producer.health().ready
    assert not producer.health().live
