"""S-05, S-06: the file under the journal is full, gone, replaced or read-only."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.producer.support import events_in, issued, journal_in, settings_for, until

from approvaltrail.producer import JournalUnavailableError, Producer
from approvaltrail.producer.errors import Cause


async def refuses(producer: Producer, cause: Cause, file: Path) -> None:
    """See that the next record, and check, refuse with this cause and name the file."""
    with pytest.raises(JournalUnavailableError) as caught:
        await producer.record(issued())
    assert caught.value.cause is cause
    assert str(file) in str(caught.value)
    with pytest.raises(JournalUnavailableError):
        producer.check()
    assert not producer.health().ready


@pytest.mark.parametrize("suffix", ["", "-wal"])
async def test_deleted_and_put_back(tmp_path: Path, suffix: str) -> None:
    """S-06: a deleted journal is noticed by the next record, and put back it is used again."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    await producer.record(issued())
    file = journal_in(tmp_path)
    part = file.with_name(file.name + suffix)
    part.rename(tmp_path / "elsewhere")
    await refuses(producer, Cause.MISSING, file)
    (tmp_path / "elsewhere").rename(part)
    await until(lambda: producer.health().ready, "the journal is back")
    assert (await producer.record(issued())).sequence == 2
    await producer.close(1)
    assert [event.sequence for event in events_in(file)] == [1, 2]


async def test_replaced(tmp_path: Path) -> None:
    """S-06: a journal replaced by another file is noticed by the next record."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    await producer.record(issued())
    file = journal_in(tmp_path)
    file.rename(tmp_path / "elsewhere")
    file.touch()
    await refuses(producer, Cause.REPLACED, file)
    await producer.close(1)
    assert file.stat().st_size == 0


async def test_made_read_only(tmp_path: Path) -> None:
    """S-06: a journal made read-only takes nothing, and goes on when that is undone."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    await producer.record(issued())
    file = journal_in(tmp_path)
    file.chmod(0o400)
    await refuses(producer, Cause.READ_ONLY, file)
    file.chmod(0o600)
    await until(lambda: producer.health().ready, "the journal is writable")
    assert (await producer.record(issued())).sequence == 2
    await producer.close(1)


async def test_directory_removed(tmp_path: Path) -> None:
    """S-06: no event is acknowledged after the whole directory is gone."""
    producer = Producer(settings_for(tmp_path / "journals"))
    producer.start()
    await producer.record(issued())
    file = journal_in(tmp_path / "journals")
    shutil.rmtree(tmp_path / "journals")
    await refuses(producer, Cause.MISSING, file)
    report = await producer.close(1)
    assert report.pending == 1


async def test_a_disk_that_does_not_answer(tmp_path: Path) -> None:
    """A write that gets no answer fails its callers after the stall limit, and then recovers."""
    producer = Producer(settings_for(tmp_path, stall_seconds=0.5))
    producer.start()
    await producer.record(issued())
    file = journal_in(tmp_path)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # the writer now waits, as for a disk
        # the disk answers only after this: who waits for it waits for ever
        results = await asyncio.gather(
            producer.record(issued()),
            asyncio.to_thread(producer.record_sync, issued()),
            return_exceptions=True,
        )
        assert {getattr(result, "cause", None) for result in results} == {Cause.STALLED}
        with pytest.raises(JournalUnavailableError, match="has not answered"):
            producer.check()
        other.execute("ROLLBACK")
    await until(lambda: producer.health().ready, "the disk answers")
    await producer.record(issued())
    await producer.close(1)


FULL_DISK = """
import asyncio, resource, signal, sys
from pathlib import Path
from approvaltrail.producer import JournalUnavailableError, Producer
from tests.producer.support import issued, settings_for, until

async def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    producer = Producer(settings_for(Path(sys.argv[1])))
    producer.start()
    await producer.record(issued())
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))  # every file may grow to this
    taken = 1
    try:
        while True:
            await producer.record(issued(plan_summary="z" * 1_500))
            taken += 1
    except JournalUnavailableError as error:
        print(error.cause.value, "free space" in str(error), sys.argv[1] in str(error))
    try:
        producer.check()
    except JournalUnavailableError:
        print("check refuses")
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await until(lambda: producer.health().ready, "there is space again")
    recorded = await producer.record(issued())
    print(recorded.sequence == taken + 1)
    await producer.close(1)

asyncio.run(main())
"""


def test_full_disk(tmp_path: Path) -> None:
    """S-05: when the disk takes no more, recording fails with the next step, and recovers."""
    ran = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=Path.cwd(),
    )
    said = [line for line in ran.stdout.splitlines() if not line.startswith("20")]
    assert said[0] in {"disk_error True True", "disk_full True True"}
    assert said[1:] == ["check refuses", "True"]
    numbers = [event.sequence for event in events_in(journal_in(tmp_path))]
    assert numbers == list(range(1, len(numbers) + 1))
