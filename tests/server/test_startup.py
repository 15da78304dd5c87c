"""When a server must not start, each reason in the one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.server.helpers import read_templates, secret, template

from approvaltrail.gate import Deployment, GateSettings, LedgerKind
from approvaltrail.server.errors import StartRefusedError
from approvaltrail.server.settings import ServerSettings
from approvaltrail.server.startup import RULES, check_server

CLUSTER = template()["cluster"]
LOGIN = {
    "tidb_host": "gateway01.example.org",
    "tidb_sql_user": "p1.reader",
    "tidb_sql_password": secret("canary-password"),
}
KEY = {"platform_public_key": "PUBLIC0001", "platform_private_key": secret("private-part")}
SHARED = secret("a secret for start-up tests, 48 bytes long......")
REST = {"rest": True, "rest_token": secret("a static token for start-up tests, 48 bytes....")}
REMOTE: dict[str, Any] = {
    "deployment": Deployment.REMOTE,
    "confirm_secret": SHARED,
    "ledger": LedgerKind.SQLITE,
    "single_process": True,
}


def problems(
    *tables: dict[str, Any], gate: dict[str, Any] | None = None, **settings: Any
) -> tuple[str, ...]:
    """Return why a server with these settings must not start."""
    try:
        check_server(
            ServerSettings.model_construct(**settings),
            GateSettings.model_construct(**(REMOTE if gate is None else gate)),
            templates=read_templates(*tables),
        )
    except StartRefusedError as error:
        return error.problems
    return ()


GOOD: dict[str, Any] = {**KEY, "own_keys": True}
REFUSED: dict[str, tuple[tuple[dict, ...], dict[str, Any], str]] = {
    "template_outside_boundary": ((template(),), {"cluster_allow": "1, 2"}, "outside"),
    "template_name_taken": ((template(name="tidb_execute"),), {}, "another tool"),
    "login_with_many_targets": (
        (template(name="a"), template(name="b", cluster="2")),
        {**LOGIN, "tidb_cluster_id": CLUSTER},
        "on paper alone",
    ),
    "login_without_cluster_identity": ((), LOGIN, "TIDB_CLUSTER_ID is not set"),
    "rest_without_cluster_identity": ((template(),), REST, "no cluster identity"),
    "cluster_identity_differs": ((template(),), {"tidb_cluster_id": "7"}, "copied from elsewhere"),
    "login_incomplete": (
        (),
        {**LOGIN, "tidb_cluster_id": CLUSTER, "tidb_sql_password": None},
        "TIDB_SQL_PASSWORD",
    ),
    "platform_key_incomplete": ((), {"platform_private_key": None}, "together"),
    "no_credential": (
        (),
        {"own_keys": False, "callers": Path("callers.toml"), "platform_public_key": None,
         "platform_private_key": None},
        "no credential",
    ),
    "callers_unknown": ((), {"own_keys": False}, "tells callers apart"),
    "rest_without_credential": (
        (), {"rest": True, "own_keys": False, "callers": Path("callers.toml")}, "nobody in",
    ),
    "rest_token_weak": ((), {"rest": True, "rest_token": secret("short")}, "fewer than 32"),
    "rest_tenant_missing": ((), {**REST, "rest_tenant": ""}, "TENANT is empty"),
    "credential_secret_weak": ((), {"credential_secret": secret("")}, "fewer than 32"),
    "trusted_proxies_unusable": ((), {"trusted_proxies": "10.0.0.0/8, proxy-1"}, "'proxy-1'"),
}  # fmt: skip


def test_a_sound_deployment_starts() -> None:
    """The settings that the cases below break one by one are allowed."""
    assert problems(**GOOD) == ()
    assert problems(template(), **GOOD) == ()
    assert problems(template(), **GOOD, **LOGIN, **REST, tidb_cluster_id=CLUSTER) == ()
    assert problems(gate={"deployment": Deployment.STDIO}, **KEY) == ()


@pytest.mark.parametrize("code", [rule.code for rule in RULES])
def test_a_broken_rule_is_named(code: str) -> None:
    """B2, B3: each rule alone refuses to start, and its sentence says why."""
    tables, settings, said = REFUSED[code]
    (problem,) = problems(*tables, **(GOOD | settings))
    assert said in problem


def test_every_reason_comes_at_once() -> None:
    """G8, S5, B3, X6: the gate's reasons and the server's stand in one answer."""
    gate = {"deployment": Deployment.REMOTE}
    found = problems(template(), gate=gate, cluster_allow="1", rest=True, rest_token=secret("x"))
    said = "\n".join(found)
    for part in ("CONFIRM_SECRET", "CONTROL_DSN", "outside", "no cluster identity", "fewer than"):
        assert part in said
    assert len(found) >= 6


def test_a_read_only_remote_starts_without_secret_and_ledger() -> None:
    """G8: what has no confirm flow gains no dependency that it cannot use."""
    gate = {"deployment": Deployment.REMOTE, "writable": False}
    assert problems(gate=gate, **GOOD) == ()


def test_a_writable_remote_needs_a_shared_ledger() -> None:
    """G8, X6: SQLite serves a remote only where no other process does, by the operator's word."""
    (problem,) = problems(gate=REMOTE | {"single_process": False}, **GOOD)
    assert "SQLite" in problem


def test_an_empty_secret_is_an_error() -> None:
    """S5: a secret that is set but empty is no secret, over a pipe either."""
    gate = {"deployment": Deployment.STDIO, "confirm_secret": secret("")}
    assert any("empty" in problem for problem in problems(gate=gate, **GOOD))


def test_templates_are_read_from_their_file(tmp_path: Path) -> None:
    """B2: the file's own problems stand among the reasons."""
    path = tmp_path / "templates.toml"
    path.write_text('[[template]]\nname = "a"\ndescription = "x"\nsql = "SELECT 1"\n')
    settings = ServerSettings.model_construct(**GOOD, templates=path)
    with pytest.raises(StartRefusedError) as caught:
        check_server(settings, GateSettings.model_construct(**REMOTE))
    assert any("cluster is missing" in problem for problem in caught.value.problems)
    with pytest.raises(StartRefusedError, match="cannot be read"):
        check_server(
            ServerSettings.model_construct(**GOOD, templates=tmp_path / "none.toml"),
            GateSettings.model_construct(**REMOTE),
        )


def test_no_reason_repeats_a_secret() -> None:
    """S-11: refusals to start name settings, never their values."""
    found = problems(
        rest=True, rest_token=secret("canary-tok"), gate={"confirm_secret": secret("canary-sec")},
        **(LOGIN | {"tidb_sql_user": None}),
    )  # fmt: skip
    assert found
    assert "canary" not in "\n".join(found)
