"""What a heartbeat may speak for while a batch is on its way to the disk."""

from __future__ import annotations

import pytest

from approvaltrail.producer.stamping import Stamper
from approvaltrail.producer.state import JournalState
from approvaltrail.schemas.identity import new_producer_id


@pytest.fixture
def journal_state() -> JournalState:
    """Give the state of a journal that has recorded nothing."""
    return JournalState(
        producer_id=new_producer_id(),
        service="test",
        instance="host",
        machine="machine",
        inode=1,
        created_at=0,
    )


def test_a_heartbeat_does_not_speak_for_what_is_being_committed(
    journal_state: JournalState,
) -> None:
    """An event that has its time and is not yet on disk holds back the instant that is settled."""
    now = [1_000]
    stamper = Stamper(journal_state, lambda: now[0])
    assert stamper.settled_until(1_500) == 1_500
    stamped = stamper.stamp([(None, b"tail")])
    assert stamper.settled_until(1_500) == 1_000
    stamper.confirm(stamped)
    stamper.release()
    assert (stamper.settled_until(1_500), stamper.last_sequence) == (1_500, 1)


def test_a_failed_commit_holds_nothing_back(journal_state: JournalState) -> None:
    """Numbers of a batch that failed are not used up, and the next instant is settled again."""
    stamper = Stamper(journal_state, lambda: 1_000)
    stamper.stamp([(None, b"tail")])
    stamper.release()
    assert (stamper.settled_until(1_500), stamper.last_sequence) == (1_500, 0)
