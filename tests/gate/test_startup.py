"""When a gate refuses to start, and what it takes from the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.gate.common import OTHER_SECRET, SECRET, settings

from approvaltrail.gate import (
    Deployment,
    Gate,
    GateSettings,
    LedgerKind,
    MemoryLedger,
    SqliteLedger,
    StartupRefusedError,
)
from approvaltrail.gate.startup import RULES, check_startup, ledger_kind
from approvaltrail.gate.testing import EventLog
from approvaltrail.schemas import SettingsError

REMOTE = {"deployment": Deployment.REMOTE}
SQLITE_DSN = "sqlite:////var/lib/control.db"
VARIABLES = (
    "CONFIRM_SECRET",
    "CONFIRM_SECRET_FILE",
    "CONTROL_DSN",
    "CONTROL_DSN_FILE",
    "APPROVALTRAIL_CONTROL_DSN",
    "APPROVALTRAIL_CONTROL_DSN_FILE",
    "TIDB_MCP_CONFIRM_TTL_MS",
    "APPROVALTRAIL_CONFIRM_TTL_MS",
    "APPROVALTRAIL_DEPLOYMENT",
    "APPROVALTRAIL_LEDGER",
)


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def problems(**values: Any) -> str:
    """Return why a gate with these settings does not start, or nothing."""
    try:
        check_startup(settings(**values))
    except StartupRefusedError as error:
        return "\n".join(error.problems)
    return ""


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, []),
        ({"confirm_secret": SECRET}, []),
        (REMOTE | {"writable": False}, []),
        (REMOTE, ["CONFIRM_SECRET is not set", "CONTROL_DSN is not set"]),
        (REMOTE | {"control_dsn": SQLITE_DSN}, ["CONFIRM_SECRET is not set", "SQLite file"]),
        (REMOTE | {"confirm_secret": SECRET}, ["CONTROL_DSN is not set"]),
        (
            REMOTE | {"confirm_secret": SECRET, "ledger": LedgerKind.MEMORY},
            ["CONTROL_DSN is not set"],
        ),
        (
            REMOTE | {"confirm_secret": SECRET, "control_dsn": SQLITE_DSN},
            ["APPROVALTRAIL_SINGLE_PROCESS"],
        ),
        (REMOTE | {"confirm_secret": SECRET, "ledger": LedgerKind.SQLITE}, ["SQLite file"]),
        (
            REMOTE | {"confirm_secret": SECRET, "control_dsn": SQLITE_DSN, "single_process": True},
            [],
        ),
        (
            REMOTE | {"confirm_secret": SECRET, "control_dsn": "redis://host/0"},
            ["no ledger for"],
        ),
        (REMOTE | {"confirm_secret": SECRET, "control_dsn": "mysql://u:p@h:4000/control"}, []),
        (REMOTE | {"confirm_secret": SECRET, "control_dsn": "postgresql://u:p@h/control"}, []),
        (
            REMOTE | {"confirm_secret": SECRET, "control_dsn": "tidb://u:p@h/d?autocommit=0"},
            ["sets autocommit"],
        ),
        ({"ledger": LedgerKind.CONTROL}, ["CONTROL_DSN is not set; set it"]),
        ({"confirm_secret": SECRET, "ledger": LedgerKind.MEMORY}, ["would accept a used token"]),
        ({"confirm_secret": ""}, ["empty"]),
        ({"confirm_secret": "x" * 31}, ["31 bytes"]),
        ({"confirm_secret": SECRET, "confirm_secret_previous": "short"}, ["PREVIOUS"]),
        (
            REMOTE | {"confirm_secret": "short", "ledger": LedgerKind.MEMORY},
            ["5 bytes", "CONTROL_DSN is not set"],
        ),
    ],
)
def test_every_reason_not_to_start_is_named_at_once(
    values: dict[str, Any], words: list[str]
) -> None:
    """G8, S5, X6, G-07: all broken rules are named together, and none that is kept."""
    found = problems(**values)
    assert len(found.splitlines()) == len(words)
    assert all(word in found for word in words)


def test_every_rule_is_reached() -> None:
    """The rules have codes of their own, so that each can be looked up."""
    assert len({rule.code for rule in RULES}) == len(RULES)


def test_a_gate_made_by_hand_keeps_the_rules_too() -> None:
    """G-07: a writable remote with a ledger in memory does not start, however it is made."""
    with pytest.raises(StartupRefusedError, match="in memory"):
        Gate(settings(confirm_secret=SECRET, **REMOTE), recorder=EventLog(), ledger=MemoryLedger())


def test_the_ledger_follows_the_secret() -> None:
    """X6: with a shared secret stdio claims in the shared store, else in memory."""
    assert ledger_kind(settings()) is LedgerKind.MEMORY
    assert ledger_kind(settings(confirm_secret=SECRET)) is LedgerKind.SQLITE
    assert ledger_kind(settings(control_dsn=SQLITE_DSN)) is LedgerKind.CONTROL


def test_a_gate_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """G8: secret, lifetime and store are read under the names of the documents."""
    (tmp_path / "secret").write_text(SECRET + "\n")
    monkeypatch.setenv("CONFIRM_SECRET_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("TIDB_MCP_CONFIRM_TTL_MS", "60000")
    monkeypatch.setenv("APPROVALTRAIL_TOKEN_STORE", str(tmp_path / "tokens.db"))
    gate = Gate.from_environment(recorder=EventLog())
    assert isinstance(gate.ledger, SqliteLedger)
    assert gate.ledger.path == tmp_path / "tokens.db"
    assert not gate.keys.ephemeral
    assert GateSettings().lifetime.total_seconds() == 60


@pytest.mark.parametrize("name", ["CONTROL_DSN", "APPROVALTRAIL_CONTROL_DSN"])
def test_the_control_database_comes_from_a_variable_or_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """G7: `CONTROL_DSN`, its alias and their `_FILE` forms name the shared ledger."""
    (tmp_path / "dsn").write_text("mysql://u:p@127.0.0.1:1/control\n")
    for variable, value in ((name, "postgresql://u:p@h/d"), (f"{name}_FILE", tmp_path / "dsn")):
        with monkeypatch.context() as environment:
            environment.setenv(variable, str(value))
            assert ledger_kind(GateSettings.from_environment()) is LedgerKind.CONTROL
    monkeypatch.setenv(f"{name}_FILE", str(tmp_path / "dsn"))
    gate = Gate.from_environment(recorder=EventLog(), confirm_secret=SECRET, **REMOTE)
    assert repr(gate.ledger) == "SqlLedger(mysql)"
    gate.close()


def test_a_token_lives_ten_minutes_by_default() -> None:
    """G8: the default lifetime is ten minutes; more than a day is no usable value."""
    assert GateSettings().lifetime.total_seconds() == 600
    for wrong in (86_400_001, 999, 0, -1):
        with pytest.raises(SettingsError, match="APPROVALTRAIL_CONFIRM_TTL_MS"):
            GateSettings.from_environment(confirm_ttl_ms=wrong)


def test_an_empty_secret_in_the_environment_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """S5: an explicitly empty secret is no unset one."""
    monkeypatch.setenv("CONFIRM_SECRET", "")
    with pytest.raises(StartupRefusedError, match=r"CONFIRM_SECRET: .*empty"):
        Gate.from_environment(recorder=EventLog())


def test_no_message_repeats_a_secret() -> None:
    """S-11: settings, errors and keys show no secret."""
    made = settings(confirm_secret=OTHER_SECRET, control_dsn="mysql://u:hidden@h/d", **REMOTE)
    assert OTHER_SECRET not in repr(made)
    for dsn in ("redis://u:hidden@h/d", "mysql://u:hidden@h/d?autocommit=hidden"):
        found = problems(confirm_secret=OTHER_SECRET, control_dsn=dsn, **REMOTE)
        assert found
        assert "hidden" not in found
