"""A start that is refused names what is in its way, and leaves the disk as it found it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.producer.support import bodies_in, issued, journal_in, journals_in, settings_for

from approvaltrail.producer import JournalDirectoryError, JournalVersionError, Producer
from approvaltrail.producer.directory import JournalDirectory, file_system_of

MEMORY = Path("/dev/shm")


def tree(directory: Path) -> dict[str, bytes]:
    """Return every path below a directory, and what the files hold."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else b""
        for path in sorted(directory.rglob("*"))
    }


@pytest.mark.skipif(
    not MEMORY.is_dir() or file_system_of(MEMORY) != "tmpfs", reason="there is no tmpfs to refuse"
)
def test_a_file_system_that_is_refused_is_not_written_to() -> None:
    """A directory in memory is refused before it, or any directory above it, is made."""
    above = MEMORY / f"approvaltrail-{os.getpid()}-refused"
    with pytest.raises(JournalDirectoryError, match="tmpfs"):
        Producer(settings_for(above / "state" / "journals")).start()
    assert not above.exists()


@pytest.mark.parametrize("last", ["a-file/journals", f"new/newer/{'x' * 300}", "a-file"])
def test_a_directory_that_cannot_be_made(tmp_path: Path, last: str) -> None:
    """Where the directory cannot be made, none of those above it is left behind."""
    (tmp_path / "a-file").write_text("kept")
    before = tree(tmp_path)
    with pytest.raises(JournalDirectoryError, match="APPROVALTRAIL_JOURNAL_DIR"):
        Producer(settings_for(tmp_path / last)).start()
    assert tree(tmp_path) == before


def test_a_directory_with_something_in_it_stays(tmp_path: Path) -> None:
    """What `prepare` made is removed only while it is empty, and nothing else ever is."""
    directory = JournalDirectory(tmp_path / "a" / "b")
    directory.prepare(frozenset({file_system_of(tmp_path) or ""}))
    (tmp_path / "a" / "of-another").touch()
    directory.unmake()
    assert list(tree(tmp_path)) == ["a", "a/of-another"]


def test_a_newer_journal_refuses_the_start_and_is_not_changed(tmp_path: Path) -> None:
    """P-06: beside a journal of a newer version nothing is made, and its bytes stay."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    producer.record_sync(issued())
    producer.close_sync(0.3)
    with contextlib.closing(sqlite3.connect(journal_in(tmp_path))) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = tree(tmp_path)
    with pytest.raises(JournalVersionError):
        Producer(settings_for(tmp_path)).start()
    assert tree(tmp_path) == before


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from approvaltrail.producer import JournalDirectoryError, Producer
from tests.producer.support import issued, settings_for

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
directory = Path(sys.argv[1]) / "state" / "journals"
producer = Producer(settings_for(directory))
for limit in (1_000, 20_000):  # every file may grow to this: no page, then not every table
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        producer.start()
    except JournalDirectoryError as error:
        print("refused", "free space" in str(error), directory.parent.exists())
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
producer.start()
print(producer.record_sync(issued()).sequence)
producer.close_sync(0.3)
"""


def test_a_full_disk_refuses_a_new_journal(tmp_path: Path) -> None:
    """S-05: where no journal can be made the start says what to do, and half a one is not left."""
    ran = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    said = [line for line in ran.stdout.splitlines() if line.startswith(("refused", "1"))]
    assert said == ["refused True False", "refused True False", "1"]


@pytest.mark.parametrize("in_the_way", [".lock", "-wal"])
def test_a_journal_that_cannot_be_opened_now_is_not_damaged(
    tmp_path: Path, in_the_way: str
) -> None:
    """Rights, space or another program in the way set no journal aside: it waits for a start."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    producer.record_sync(issued())
    producer.close_sync(0.3)
    file = journal_in(tmp_path)
    other = file.with_name(file.name + in_the_way)
    other.unlink(missing_ok=True)
    other.mkdir()
    meanwhile = Producer(settings_for(tmp_path))
    meanwhile.start()
    assert meanwhile.record_sync(issued()).sequence == 1, "in a journal of its own"
    meanwhile.close_sync(0.3)
    assert len(journals_in(tmp_path)) == 2
    assert list(tmp_path.glob("*damaged*")) == []
    other.rmdir()
    again = Producer(settings_for(tmp_path))
    again.start()
    assert again.record_sync(issued()).sequence == 2
    again.close_sync(0.3)
    assert len(bodies_in(file)) == 2
