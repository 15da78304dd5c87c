"""`approvaltrail ledger`: what the ledger spent, beside what the store holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.stored import store_story
from tests.support.story import Story

from approvaltrail.gate.ledger.protocol import Claim
from approvaltrail.gate.ledger.sqlite import SqliteLedger
from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.schemas.events import EventType
from approvaltrail.schemas.identity import new_event_id
from approvaltrail.store.connection import open_store
from approvaltrail.store.migrations import migrate

from .conftest import Ran

Command = Callable[..., Ran]


class Past:
    """A clock that stands ten minutes ago, so that what it sees has settled."""

    def now(self) -> datetime:
        return datetime.now(UTC) - timedelta(minutes=10)


def claim(ledger: SqliteLedger, nonce: str, event_id: str) -> None:
    now = Past().now()
    ledger.claim(
        Claim(
            nonce=nonce,
            claim_id=event_id,
            issued_at=now + timedelta(seconds=1),
            expires_at=now + timedelta(minutes=30),
            tool="tidb_delete_cluster",
        )
    )


@pytest.fixture
def ledger(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> SqliteLedger:
    """Give a shared ledger with one claim whose acceptance is stored."""
    story = Story(Past().now())
    call = story.call()
    nonce = story.issue(call)
    story.accept(call, nonce)
    accepted = next(one for one in story.events if one.event_type is EventType.ACCEPTED)
    with open_store(database) as store:
        migrate(store)
        store_story(store, story.events, datetime.now(UTC))
    monkeypatch.setenv("CLICKHOUSE_DSN", database)
    monkeypatch.setenv("APPROVALTRAIL_TOKEN_STORE", str(tmp_path / "tokens.db"))
    monkeypatch.setenv("APPROVALTRAIL_LEDGER", "sqlite")
    ledger = SqliteLedger(tmp_path / "tokens.db", clock=Past())
    claim(ledger, nonce, accepted.event_id)
    return ledger


def test_claims_and_acceptances_that_name_each_other_agree(
    command: Command, ledger: SqliteLedger
) -> None:
    """X4: every claim has its acceptance and every acceptance its claim: exit 0."""
    ran = command("ledger", "reconcile", "--json")
    found = json.loads(ran.out)
    assert (ran.code, found["agrees"]) == (ExitCode.OK, True), ran
    assert found["reconciliation"]["matched"] == 1


def test_a_spent_nonce_without_a_record_is_named(command: Command, ledger: SqliteLedger) -> None:
    """X4: a claim whose acceptance nobody recorded is a finding, by nonce: exit 1."""
    claim(ledger, "spent-and-never-recorded", new_event_id())
    ran = command("ledger", "reconcile")
    assert ran.code == ExitCode.FAILED_CHECK
    assert "spent, not recorded" in ran.out
    assert "do not agree" in ran.out


def test_a_ledger_in_memory_cannot_be_reconciled(
    command: Command, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is gone with its process is an error of settings that says what to name instead."""
    monkeypatch.setenv("APPROVALTRAIL_LEDGER", "memory")
    ran = command("ledger", "reconcile")
    assert ran.code == ExitCode.SETTINGS
    assert "APPROVALTRAIL_TOKEN_STORE" in ran.err


def test_a_migration_needs_a_control_database(command: Command) -> None:
    """Without CONTROL_DSN the command says which variable it needs."""
    ran = command("ledger", "migrate")
    assert ran.code == ExitCode.SETTINGS
    assert "CONTROL_DSN" in ran.err
