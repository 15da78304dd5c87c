"""Files that an earlier version wrote, kept as they were: they open for ever.

`python -m tests.chaos.test_old_files` writes the files of the version that runs it; files of a
version are written once and never again.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.chaos.oracle import assert_sealed, completeness
from tests.consumers.parts import stored_ids
from tests.support.processes import wait_until

from approvaltrail.producer import Producer
from approvaltrail.producer.settings import ProducerSettings
from approvaltrail.schemas.encoding import decode_event
from approvaltrail.schemas.events import ApprovalEvent, EventType, NonceTrust, Outcome, Reason

if TYPE_CHECKING:
    from tests.chaos.world import World

FIXTURES = Path(__file__).parents[1] / "fixtures"
LAYOUTS = sorted(path.name for path in FIXTURES.glob("journal-layout-*"))
WRITES_LAYOUT = "journal-layout-1"
SERVICE = "old-server"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_journal_of_an_earlier_version_is_delivered_in_full_and_its_seals_hold(
    world: World, layout: str
) -> None:
    """What it holds reaches the store byte for byte, under its own id, and completeness says so."""
    expected = json.loads((FIXTURES / layout / "expected.json").read_text())
    for file in (FIXTURES / layout).glob("*.journal*"):
        world.journals.mkdir(exist_ok=True)
        shutil.copy(file, world.journals / file.name)
    world.start_sink("one", retention_days="36500")
    settings = world.producer_settings().model_copy(update={"service": SERVICE})
    producer = Producer(settings)
    producer.start()
    wait_until(lambda: not producer.health().pending, "it is delivered", 30)
    assert producer.close_sync(20).pending == 0
    with world.store() as store:
        wait_until(lambda: stored_ids(store) == set(expected["event_ids"]), "all is stored", 30)
        wait_until(lambda: assert_sealed(store) == len(expected["event_ids"]), "seals hold", 30)
        (status,) = [
            one
            for one in completeness(store).producers
            if one.producer_id == expected["producer_id"]
        ]
        assert (status.stored, status.missing, status.condition) == (
            len(expected["event_ids"]),
            0,
            "closed",
        )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_event_of_an_earlier_version_is_read_as_it_was_meant(layout: str) -> None:
    """Each kind of event decodes to the very values with which it was recorded."""
    expected = json.loads((FIXTURES / layout / "expected.json").read_text())
    for data, values in zip(expected["bytes"], expected["events"], strict=True):
        assert json.loads(decode_event(bytes.fromhex(data)).model_dump_json()) == values


def events() -> list[ApprovalEvent]:
    """Return one event of each kind, with a value in every field that it may have."""
    at = datetime(2026, 11, 30, 12, 0, 0, 123_456, tzinfo=UTC)
    common = {
        "nonce": "pV3nq0T9mQe1c8rXyZ4kLw",
        "nonce_trust": NonceTrust.VERIFIED,
        "tenant": "acme",
        "tool": "tidb_delete_cluster",
        "target": "prod-7",
        "action": "delete cluster",
        "plan_hash": "9f" * 32,
        "ledgered": True,
        "issued_at": at,
        "expires_at": at + timedelta(minutes=10),
        "key_id": "8c5f1a20",
        "principal": "zoë@corp.example",
        "principal_kind": "user",
        "credential_id": "ab" * 16,
        "session_id": "session-1",
        "peer_address": "10.0.0.1",
        "client_address": "2001:db8::1",
        "address_source": "trusted_proxy",
        "client_name": "agent/1.4.2",
        "request_id": "request-1",
        "trace_id": "cd" * 16,
        "attributes": (("note", "Grüße ✓"), ("region", "eu")),
    }
    ids = [f"0190a000-0000-7000-8000-{number:012d}" for number in range(1, 7)]
    kinds = (
        {"event_type": EventType.ISSUED, "plan_summary": "delete cluster prod-7 (3 nodes)"},
        {"event_type": EventType.ACCEPTED},
        {
            "event_type": EventType.COMPLETED,
            "outcome": Outcome.SUCCEEDED,
            "acceptance_id": ids[1],
        },
        {
            "event_type": EventType.REPLAYED,
            "reason": Reason.ALREADY_USED,
            "spent_at": at,
            "spent_claim_id": ids[1],
        },
        {
            "event_type": EventType.REFUSED,
            "reason": Reason.WRONG_TARGET,
            "token_tenant": "beta",
            "token_tool": "tidb_execute",
            "token_target": "prod-8",
            "token_plan_hash": "8e" * 32,
        },
    )
    made = [
        ApprovalEvent(
            event_id=event_id, occurred_at=at + timedelta(seconds=number), **(common | kind)
        )
        for number, (event_id, kind) in enumerate(zip(ids, kinds, strict=False))
    ]
    bare = ApprovalEvent(
        event_id=ids[5],
        event_type=EventType.REFUSED,
        reason=Reason.MISSING_TOKEN,
        occurred_at=at,
        tool="tidb_execute",
    )
    return [*made, bare]


def write(folder: Path) -> None:
    """Record the events with no broker in reach and keep what is on disk."""
    with tempfile.TemporaryDirectory() as temporary:
        settings = ProducerSettings(
            service=SERVICE,
            instance="pod-1",
            journal_dir=Path(temporary) / "journals",
            kafka_bootstrap_servers="127.0.0.1:1",
        )
        producer = Producer(settings)
        producer.start()
        recorded = [producer.record_sync(event) for event in events()]
        producer.close_sync(1)
        folder.mkdir(parents=True)
        (journal,) = (Path(temporary) / "journals").glob("*.journal")
        shutil.copy(journal, folder / journal.name)
    with contextlib.closing(sqlite3.connect(folder / journal.name)) as connection:
        connection.execute("UPDATE state SET machine = 'another machine', inode = 1")
        connection.commit()
        rows = connection.execute("SELECT body FROM events ORDER BY sequence").fetchall()
        connection.execute("PRAGMA journal_mode = DELETE")  # one file holds it all
        connection.execute("PRAGMA journal_mode = WAL")
    bodies = [row[0] for row in rows]
    expected = {
        "producer_id": recorded[0].producer_id,
        "event_ids": [event.event_id for event in events()],
        "bytes": [body.hex() for body in bodies],
        "events": [json.loads(decode_event(body).model_dump_json()) for body in bodies],
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    write(FIXTURES / WRITES_LAYOUT)
