"""A store that an earlier version made and filled: this version opens it and answers the same.

A fixture holds that version's migrations, the rows of its tables, and what is true of them.
`python -m tests.chaos.test_old_stores` writes the one of the version that runs it; a released
version's is never written again.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.oracle import EVERYTHING, assert_sealed
from tests.support.services import dsn
from tests.support.stored import heartbeat_of, store_events
from tests.support.story import Story

from approvaltrail.local.engine import EngineProcess
from approvaltrail.producer.merkle import merkle_root
from approvaltrail.producer.seals import NO_SEAL
from approvaltrail.schemas.encoding import encode_recorded
from approvaltrail.schemas.events import NonceTrust, Reason
from approvaltrail.schemas.messages import DeadLetterCause, ProducerState, Seal
from approvaltrail.store.answers import TimeRange
from approvaltrail.store.connection import Store, open_store
from approvaltrail.store.migrations import Migration, check_migrated, migrate, migrations
from approvaltrail.store.queries import Queries
from approvaltrail.store.writing import (
    DeadLetterRow,
    insert_dead_letters,
    insert_heartbeats,
    insert_seals,
    retire_producer,
)

FIXTURES = Path(__file__).parents[1] / "fixtures"
STORES = sorted(path.name for path in FIXTURES.glob("store-*"))
FILLED = ("events", "heartbeats", "seals", "dead_letters", "retired_producers")
"""The tables that programs insert into; the engine fills the others from them."""
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
WHOLE = TimeRange(NOW - timedelta(hours=2), NOW)


def truths(store: Store) -> dict[str, Any]:
    """Ask for all that a fixture states, in words that JSON has."""
    queries = Queries(store)
    overview = queries.overview(WHOLE, EVERYTHING)
    reuses = queries.reuses(WHOLE, EVERYTHING)
    completeness = queries.completeness(EVERYTHING, NOW)
    page = queries.events(WHOLE, EVERYTHING)
    return {
        "events": sorted(encode_recorded(one.event).hex() for one in page.events),
        "total": page.total,
        "counts": {kind.value: count for kind, count in overview.counts.items() if count},
        "refusals": {reason.value: count for reason, count in overview.refusals.items()},
        "busiest": {
            "tenants": {one.name: one.events for one in overview.busiest_tenants},
            "tools": {one.name: one.events for one in overview.busiest_tools},
            "principals": {one.name: one.events for one in overview.busiest_principals},
        },
        "reuses": [
            [one.presentation.event.event_id, one.number, one.total] for one in reuses.reuses
        ],
        "completeness": completeness.state.value,
        "producers": {
            one.producer_id: [one.condition, one.stored, one.missing]
            for one in completeness.producers
        },
        "dead_letters": [
            [one.topic, one.partition, one.offset, one.cause.value]
            for one in queries.dead_letters(EVERYTHING)
        ],
        "sealed": assert_sealed(store),
    }


@pytest.mark.parametrize("fixture", STORES)
def test_a_store_of_an_earlier_version_opens_and_answers_the_same(
    fixture: str, database: str
) -> None:
    """Migrated, it says of every event, count, reuse, seal and producer what is true of them."""
    folder = FIXTURES / fixture
    with open_store(database) as store:
        applied = [Migration(file.name, file.read_text()) for file in sorted(folder.glob("*.sql"))]
        migrate(store, applied)
        for table in FILLED:
            rows = (folder / f"{table}.jsonl").read_bytes()
            store.command(f"INSERT INTO {table} FORMAT JSONEachRow", data=rows)
        migrate(store)
        check_migrated(store)
        assert truths(store) == json.loads((folder / "expected.json").read_text())


def fill(store: Store) -> None:
    """Store a short story with a reuse, a forgery, a dead letter and a retired producer."""
    story = Story(NOW - timedelta(hours=1))
    call = story.call(attributes=(("note", "Grüße ✓"),))
    nonce = story.issue(call)
    story.after(seconds=5).accept(call, nonce)
    story.after(seconds=9).replay(call | {"client_address": "2001:db8::9"}, nonce)
    story.after(seconds=9).refuse(call, Reason.WRONG_TARGET, nonce, token_target="prod-8")
    story.after(seconds=9).refuse(call, Reason.MISSING_TOKEN)
    story.after(seconds=9).refuse(
        call, Reason.BAD_SIGNATURE, story.nonce(), trust=NonceTrust.CLAIMED
    )
    lost = Story(NOW - timedelta(hours=1), seed=2, instance="mcp-2")
    lost.issue(lost.call("bo@corp.example"))
    for one, state in ((story, ProducerState.CLOSED), (lost, ProducerState.LIVE)):
        store_events(store, one.events)
        beyond = 3 if one is lost else 0
        last = len(one.events) + beyond
        at = NOW - timedelta(minutes=30)
        insert_heartbeats(store, [heartbeat_of(one.events, at, state=state, last_sequence=last)])
        insert_seals(store, [seal_of(one)])
    insert_dead_letters(
        store,
        [
            DeadLetterRow(
                topic="approval-events",
                partition=1,
                offset=7,
                cause=DeadLetterCause.UNKNOWN_SCHEMA,
                detail="no schema of this fingerprint is known",
                producer_id=lost.producer_id,
                sequence=2,
                dead_lettered_at=NOW - timedelta(minutes=20),
            )
        ],
    )
    retire_producer(
        store,
        lost.producer_id,
        reason="node lost with its emptyDir",
        retired_by="ana@corp.example",
        retired_at=NOW - timedelta(minutes=10),
    )


def seal_of(story: Story) -> Seal:
    """Put all of a story under one seal."""
    return Seal(
        producer_id=story.producer_id,
        seal_number=1,
        first_sequence=1,
        last_sequence=len(story.events),
        merkle_root=merkle_root([encode_recorded(event) for event in story.events]).hex(),
        previous_seal_digest=NO_SEAL,
        sealed_at=story.now,
    )


@contextmanager
def fresh_store() -> Iterator[Store]:
    """Open an empty store in an engine of its own."""
    with tempfile.TemporaryDirectory() as folder:
        engine = EngineProcess(Path(folder))
        try:
            engine.start().wait_ready()
            address = engine.address
            name = dsn(address.url, address.user, address.password, "default")
            with open_store(name) as store:
                yield store
        finally:
            engine.stop()


def write(folder: Path) -> None:
    """Make the fixture of this version."""
    folder.mkdir()
    with fresh_store() as store:
        migrate(store)
        fill(store)
        for step in migrations():
            (folder / step.name).write_text(step.text)
        for table in FILLED:
            lines = store.query(f"SELECT formatRow('JSONEachRow', *) FROM {table}").rows
            (folder / f"{table}.jsonl").write_text("".join(line for (line,) in lines))
        expected = json.dumps(truths(store), indent=1, ensure_ascii=False)
        (folder / "expected.json").write_text(f"{expected}\n")


if __name__ == "__main__":
    newest = migrations()[-1].name.partition("_")[0]
    write(FIXTURES / f"store-{newest}")
