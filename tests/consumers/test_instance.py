"""A sink with a name of its own: back at once after a kill, and never two of one name at work."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from tests.consumers.parts import Journal, Topic, assert_counted_once, stored_ids, until
from tests.consumers.process import SinkProcess

from approvaltrail.consumers.errors import InstanceTakenError
from approvaltrail.consumers.exit_codes import ExitCode
from approvaltrail.consumers.instance import InstanceWatch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from approvaltrail.consumers.settings import SinkSettings
    from approvaltrail.store.connection import Store


async def test_an_orphan_of_the_same_name_that_wakes_up_ends_and_stores_nothing_twice(
    topic: Topic, store: Store, settings: Callable[..., SinkSettings], tmp_path: Path
) -> None:
    """A sink of the same name replaces it at once (KIP-345); back, it cannot commit and ends."""
    journal, chosen = Journal(), settings(sink_instance="the-only-one")
    orphan = SinkProcess(chosen, tmp_path / "orphan.log", flush_interval_ms="1500")
    await until(lambda: orphan.ready, "the first sink is ready")
    await topic.send(journal, journal.records(100))
    await until(lambda: orphan.metric("buffered_messages", topic.events) == 100, "it holds all")
    os.kill(orphan.pid, signal.SIGSTOP)
    successor = SinkProcess(chosen, tmp_path / "successor.log")

    def supervised() -> bool:
        nonlocal successor
        if successor.exit_code is not None:
            successor = SinkProcess(chosen, tmp_path / "successor.log")
        return True

    try:
        await until(lambda: len(stored_ids(store)) == 100, "its successor stored them")
        os.kill(orphan.pid, signal.SIGCONT)
        await until(lambda: supervised() and orphan.exit_code is not None, "the orphan ends")
        assert orphan.exit_code == ExitCode.UNAVAILABLE
        assert "APPROVALTRAIL_SINK_INSTANCE" in orphan.log.read_text()
        await topic.send(journal, journal.records(50))
        await until(lambda: supervised() and len(stored_ids(store)) == 150, "its successor goes on")
    finally:
        successor.stop()
        orphan.stop()
    assert_counted_once(store, journal)


def test_a_member_that_was_replaced_five_times_in_a_minute_says_that_its_name_is_taken() -> None:
    """Sessions that expire now and then are no such thing, nor is a sink without a name."""
    now = 0.0
    watch, nameless = InstanceWatch("pod-0", lambda: now), InstanceWatch(None, lambda: now)
    for number in range(12):
        now += 16
        watch.joined(f"member-{number}")
        watch.joined(f"member-{number}")
        watch.check()
    for number in range(5):
        now += 1
        watch.joined(f"other-{number}")
        nameless.joined(f"other-{number}")
    nameless.check()
    with pytest.raises(InstanceTakenError, match="pod-0"):
        watch.check()
