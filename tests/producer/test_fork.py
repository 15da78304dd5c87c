"""Fork: the child gets a journal of its own, and the parent's is never touched by it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING

from tests.producer.support import events_in, issued, journals_in, settings_for

from approvaltrail.producer import Producer
from approvaltrail.producer.inspection import Condition, list_journals

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def in_child(work: Callable[[], str]) -> str:
    """Fork, work in the child, and return what it says."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            said = work()
        except BaseException as error:  # noqa: BLE001
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        said = answers.read()
    os.waitpid(child, 0)
    return said


def test_child_opens_its_own_journal(tmp_path: Path) -> None:
    """A forked child records into a new journal, numbered from 1; the parent goes on as before."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    for _ in range(5):
        producer.record_sync(issued())

    def work() -> str:
        sequences = [producer.record_sync(issued()).sequence for _ in range(3)]
        producer.close_sync(0.5)
        return str(sequences)

    assert in_child(work) == "[1, 2, 3]"
    assert producer.record_sync(issued()).sequence == 6
    producer.close_sync(0.5)
    counts = [len(events_in(file)) for file in journals_in(tmp_path)]
    assert sorted(counts) == [3, 6]
    identities = {event.producer_id for file in journals_in(tmp_path) for event in events_in(file)}
    assert len(identities) == 2


def test_child_does_not_free_the_parents_lock(tmp_path: Path) -> None:
    """A child that ends leaves the parent's journal locked, and one that lives does not hold it."""
    producer = Producer(settings_for(tmp_path))
    producer.start()
    producer.record_sync(issued())
    assert in_child(lambda: "nothing recorded") == "nothing recorded"
    assert [report.condition for report in list_journals(tmp_path)] == [Condition.IN_USE]

    def work() -> str:
        # the parent's lock is not inherited: only the parent, alive, keeps the journal in use
        return str([report.condition.value for report in list_journals(tmp_path)])

    assert in_child(work) == "['in_use']"
    producer.record_sync(issued())
    producer.close_sync(0.5)
    assert [report.condition for report in list_journals(tmp_path)] == [Condition.FREE]


SURVIVING_CHILD = """
import os, sys, time, warnings
from pathlib import Path
from approvaltrail.producer import Producer
from tests.producer.support import issued, settings_for
warnings.simplefilter("ignore")
producer = Producer(settings_for(Path(sys.argv[1])))
producer.start()
producer.record_sync(issued())
child = os.fork()
if child == 0:
    os.close(1)
    time.sleep(600)
os.write(1, b"child=%d;" % child)  # at once: log lines are written beside it
os._exit(0)
"""


def test_a_surviving_child_does_not_hold_the_journal(tmp_path: Path) -> None:
    """When the parent has died, a child that lives on does not keep its journal from the next."""
    parent = subprocess.Popen(
        [sys.executable, "-c", SURVIVING_CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    written = re.search(r"child=(\d+);", parent.stdout.read())
    assert written is not None
    child = int(written[1])
    parent.wait()
    parent.stdout.close()
    try:
        producer = Producer(settings_for(tmp_path))
        producer.start()
        assert producer.record_sync(issued()).sequence == 2
        producer.close_sync(0.5)
    finally:
        os.kill(child, 9)
