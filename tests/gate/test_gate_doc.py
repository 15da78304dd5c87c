"""What docs/gate.md says is so: its vectors hold, its snippets run, its names exist."""

from __future__ import annotations

import ast
import base64
import functools
import hashlib
import hmac
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.gate.common import SECRET, plan, settings
from tests.gate.test_plan_hash import HASH_OF_FIXED
from tests.gate.test_tokens import MAC, RING, TOKEN, signed

from approvaltrail.gate import (
    Caller,
    Confirmed,
    Gate,
    Plan,
    Preflight,
    Refusal,
    SqliteLedger,
    errors,
    plan_hash,
)
from approvaltrail.gate.ledger.sql_tables import KEY, LEDGER, NONCES
from approvaltrail.gate.plan import canonical_plan
from approvaltrail.gate.testing import EventLog, plan_of
from approvaltrail.gate.tokens import Unreadable, read

ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs" / "gate.md").read_text("utf-8")


def block(kind: str, name: str, language: str) -> str:
    """Return the fenced block that follows a marker."""
    found = re.search(rf"<!-- {kind}: {name} -->\n```{language}\n(.*?)```", DOC, re.DOTALL)
    assert found is not None, name
    return found[1]


def vectors(name: str) -> Any:
    """Return the vectors under that name."""
    return json.loads(block("vector", name, "json"))


def test_the_token_of_the_document_is_ours() -> None:
    """G2: secret, key id, payload, signed bytes and MAC lead to the token that the tests fix."""
    given = vectors("token")
    secret = given["secret"].encode()
    key_id = hmac.digest(secret, b"approvaltrail key id v1", "sha256").hex()[:12]
    payload = base64.urlsafe_b64encode(given["payload"].encode()).decode().rstrip("=")
    mac = hmac.digest(secret, given["signed"].encode(), "sha256")
    assert given["secret"] == SECRET
    assert given["kid"] == key_id
    assert given["signed"] == f"at1.{payload}"
    assert given["mac"] == mac.hex()
    assert given["signed"] + given["token_ends_with"] == TOKEN
    assert TOKEN.endswith(MAC)


def changed(given: dict[str, Any]) -> str | None:
    """Apply a change of the document to its token."""
    payload = base64.urlsafe_b64decode(TOKEN.split(".")[1] + "==")
    edited = payload.replace(given.get("old", "").encode(), given.get("new", "").encode())
    body = base64.urlsafe_b64encode(edited).decode().rstrip("=")
    text = given.get("text", "")
    results = {
        "nothing": TOKEN,
        "absent": None,
        "empty": "",
        "append": TOKEN + text,
        "replace": TOKEN.replace(given.get("old", ""), given.get("new", "")),
        "last character": TOKEN[:-1] + text,
        "payload": f"at1.{body}.{TOKEN.rpartition('.')[2]}",
        "sign again": signed(payload, given.get("secret", "")),
    }
    return results[given["change"]]


def test_the_refused_tokens_of_the_document_are_refused() -> None:
    """G2, S-02: each change of the document has the reason that the document gives."""
    for given in vectors("refused tokens"):
        found = read(changed(given), RING)
        reason = found.reason.value if isinstance(found, Unreadable) else None
        assert reason == given["reason"], given


def test_the_plans_of_the_document_hash_as_it_says() -> None:
    """G3: canonical form and hash of each plan, the fixed one of the tests among them."""
    given = vectors("plans")
    for one in given:
        made = Plan(**one["plan"])
        assert canonical_plan(made) == one["canonical"].encode()
        assert plan_hash(made) == one["sha256"]
        assert hashlib.sha256(one["canonical"].encode()).hexdigest() == one["sha256"]
    assert given[0]["sha256"] == HASH_OF_FIXED


LISTED = dict(re.findall(r"^\| ([GSX]-?\d+) \|[^|]*\|(.*)$", DOC, re.MULTILINE))
CASES = [f"G{number}" for number in range(1, 12)]
CASES += [f"{kind}{number}" for kind in "SX" for number in range(1, 7)]
CASES += [f"G-{number:02}" for number in range(1, 18)]
CASES += [f"S-{number:02}" for number in (1, 2, 3, 9, 10, 11)]


def first_line(reference: str) -> str:
    """Return the sentence of the specification that a test is."""
    file, _, name = reference.partition("::")
    for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    raise AssertionError(f"there is no test {reference}")


def test_each_rule_and_fault_of_the_document_has_tests_that_name_it() -> None:
    """The list is complete, and each test that it names says which rule or fault it is about."""
    assert list(LISTED) == CASES
    for case, row in LISTED.items():
        references = re.findall(r"`(tests/[\w/]+\.py::\w+)`", row)
        assert references, case
        for one in references:
            assert case in re.findall(r"[GSX]-?\d+", first_line(one)), (case, one)


def test_the_names_of_the_document_exist() -> None:
    """Errors, tables and keys are called in the document as they are in the code."""
    for name in set(re.findall(r"`((?:Ledger|TokenStore)\w*Error)`", DOC)):
        assert issubclass(getattr(errors, name), errors.LedgerError)
    for name in (KEY, NONCES.name, LEDGER.name):
        assert f"`{name}`" in DOC


async def test_the_asyncio_snippet_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decorated tool previews, executes once, and says so the second time."""
    for name in ("CONFIRM_SECRET", "CONTROL_DSN", "APPROVALTRAIL_DEPLOYMENT"):
        monkeypatch.delenv(name, raising=False)

    class Platform:
        async def cluster(self, name: str) -> Any:
            return SimpleNamespace(name=name, nodes=3)

        async def delete(self, name: str) -> str:
            return f"deleted {name}"

    names: dict[str, Any] = {
        "Gate": Gate,
        "Plan": Plan,
        "platform": Platform(),
        "producer": EventLog(),
        "caller_from_request": Caller,
    }
    exec(block("snippet", "asyncio", "python"), names)
    tool = names["tidb_delete_cluster"]
    shown = await tool("prod-7")
    assert isinstance(shown, Preflight)
    confirm = {"confirm": True, "confirm_target": "prod-7", "confirm_token": shown.token}
    assert await tool("prod-7", **confirm) == "deleted prod-7"
    assert (await tool("prod-7", **confirm)).code == "already_used"


def test_the_threads_snippet_runs(gate: Any) -> None:
    """The plain handler previews, executes once, and says so the second time."""
    names: dict[str, Any] = {
        "gate": gate.gate,
        "functools": functools,
        "plan_of": plan_of,
        "delete": lambda plan: f"deleted {plan.target}",
        "Preflight": Preflight,
        "Confirmed": Confirmed,
        "Refusal": Refusal,
    }
    exec(block("snippet", "threads", "python"), names)
    handle = names["handle"]
    token = handle("prod-7", None).token
    assert handle("prod-7", token).result == "deleted prod-7"
    assert handle("prod-7", token).code == "already_used"


def test_the_fork_snippet_runs(tmp_path: Path) -> None:
    """S2: a gate made before the fork lets one of the two processes execute."""
    names: dict[str, Any] = {
        "Confirmed": Confirmed,
        "Gate": Gate,
        "SqliteLedger": SqliteLedger,
        "os": os,
        "path": tmp_path / "t.db",
        "plan": plan(),
        "recorder": EventLog(),
        "settings": settings(),
    }
    exec(block("snippet", "fork", "python"), names)
