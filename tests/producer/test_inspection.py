"""Looking at journals from outside, and draining what a stopped server left."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.producer.support import (
    NOWHERE,
    delivered_events,
    issued,
    journal_in,
    make_topics,
    settings_for,
)

from approvaltrail.producer import JournalDirectoryError, Producer
from approvaltrail.producer.inspection import Condition, drain_journals, list_journals

if TYPE_CHECKING:
    from pathlib import Path

    from approvaltrail.local.broker import BrokerProcess


def record(directory: Path, count: int, service: str) -> None:
    """Leave a journal behind."""
    producer = Producer(settings_for(directory, service=service))
    producer.start()
    for _ in range(count):
        producer.record_sync(issued())
    producer.close_sync(0.3)


def test_list(tmp_path: Path) -> None:
    """The list tells each journal's service, numbers and condition, and changes nothing."""
    record(tmp_path, 3, "one")
    record(tmp_path, 2, "two")
    holder = Producer(settings_for(tmp_path, service="two"))
    holder.start()
    before = {file.name: file.stat().st_size for file in tmp_path.iterdir()}
    reports = {report.service: report for report in list_journals(tmp_path)}
    assert reports["one"].condition is Condition.FREE
    assert (reports["one"].last_sequence, reports["one"].pending) == (3, 3)
    in_use = reports[None]
    assert in_use.condition is Condition.IN_USE
    assert in_use.last_sequence == 2
    assert {file.name for file in tmp_path.glob("*.journal")} <= before.keys()
    holder.close_sync(0.3)
    journal = next(tmp_path.glob("one.*.journal"))
    journal.write_bytes(b"rubbish" * 1_000)
    conditions = {report.condition for report in list_journals(tmp_path)}
    assert conditions == {Condition.DAMAGED, Condition.FREE}


def test_no_such_directory(tmp_path: Path) -> None:
    """A directory that is not there is an error with its path, not an empty list."""
    with pytest.raises(JournalDirectoryError, match="nowhere"):
        list_journals(tmp_path / "nowhere")


async def test_drain(tmp_path: Path, kafka: BrokerProcess, topic_prefix: str) -> None:
    """Draining delivers every free journal of every service and leaves those in use alone."""
    record(tmp_path, 30, "one")
    record(tmp_path, 20, "two")
    record(tmp_path, 5, "busy")
    holder = Producer(settings_for(tmp_path, service="busy"))
    holder.start()
    servers = kafka.bootstrap_servers
    await make_topics(servers, topic_prefix)
    progress: list[tuple[int, int]] = []
    report = await asyncio.to_thread(
        drain_journals,
        tmp_path,
        settings_for(tmp_path, servers, topic_prefix=topic_prefix, service="unused"),
        timeout_seconds=20.0,
        on_progress=lambda sent, total: progress.append((sent, total)),
    )
    assert (report.journals, report.sent, report.pending, report.in_use) == (2, 50, 0, 1)
    assert report.problem is None
    assert progress[-1] == (50, 50)
    assert len(await delivered_events(servers, topic_prefix, 50)) == 50
    assert sorted(entry.pending for entry in list_journals(tmp_path)) == [0, 0, 5]
    holder.close_sync(0.3)


def test_drain_without_a_broker(tmp_path: Path) -> None:
    """A drain that cannot deliver ends in time, says why, and keeps the events."""
    record(tmp_path, 4, "one")
    report = drain_journals(
        tmp_path, settings_for(tmp_path, NOWHERE, service="unused"), timeout_seconds=1.0
    )
    assert (report.sent, report.pending) == (0, 4)
    assert "KafkaConnectionError" in (report.problem or "")
    assert journal_in(tmp_path).exists()
