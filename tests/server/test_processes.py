"""The server as a process of its own: over a pipe, over HTTP, and the check before either."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.server.helpers import DELETE, called, confirmation, secret, token_free

from approvaltrail.gate import GateSettings
from approvaltrail.producer import ProducerSettings
from approvaltrail.producer.inspection import list_journals
from approvaltrail.server.check import Finding, check
from approvaltrail.server.platform.values import ApiKey
from approvaltrail.server.settings import ServerSettings
from approvaltrail.server.testing import MemoryPlatforms, World, fake_api
from approvaltrail.server.testing.running import remote_gate, server_settings, serving
from approvaltrail.server.testing.world import small_world

SECRET = "canary-secret-of-a-process, 48 bytes long......."
TOKEN = "canary-token-of-a-caller"
START_SECONDS = 30


@contextlib.asynccontextmanager
async def environment(tmp_path: Path) -> AsyncIterator[tuple[dict[str, str], World, ApiKey]]:
    """Give the variables of a server before a fake platform, its broker out of reach."""
    world, key = small_world()
    async with serving(fake_api(world), lifespan=False) as url:
        yield (
            {
                "PATH": "/usr/bin:/bin",
                "HOME": str(tmp_path),
                "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
                "APPROVALTRAIL_JOURNAL_DIR": str(tmp_path / "journals"),
                "TIDB_CLOUD_PUBLIC_KEY": key.public,
                "TIDB_CLOUD_PRIVATE_KEY": key.private,
                "TIDB_CLOUD_PROJECTS_URL": f"{url}/api/v1beta",
                "TIDB_CLOUD_CLUSTERS_URL": f"{url}/v1beta1",
                "TIDB_CLOUD_IDENTITIES_URL": f"{url}/v1beta1",
            },
            world,
            key,
        )


async def test_a_pipe_needs_no_secret_and_records_on_disk(tmp_path: Path) -> None:
    """G8, P1: over stdio both steps work with a generated secret, and every event is on disk."""
    async with environment(tmp_path) as (variables, world, key):
        log = tmp_path / "log"
        with log.open("w") as errors:
            parameters = StdioServerParameters(
                command=sys.executable,
                args=["-m", "approvaltrail.server", "stdio"],
                env=variables,
            )
            async with Client(stdio_client(parameters, errlog=errors), cache=None) as client:
                assert "one cluster: 'prod-1'" in client.instructions
                shown = await called(client, DELETE, clusterId="prod-1")
                done = await called(client, DELETE, clusterId="prod-1", **confirmation(shown))
        assert done["result"]["deleted"] == "prod-1"
        assert world.performed == [("delete_cluster", "prod-1")]
        (journal,) = list_journals(tmp_path / "journals")
        assert (journal.service, journal.last_sequence) == ("tidb-mcp", 3)
        written = log.read_text()
        assert "confirm_secret_ephemeral" in written
        assert token_free(written, shown["confirmToken"])
        assert key.private not in written


async def test_a_remote_refuses_to_start_with_every_reason(tmp_path: Path) -> None:
    """G8: `http` without secret, ledger and callers says all of it, and exits."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "approvaltrail.server", "http", "--port", "0",
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TIDB_CLOUD_PUBLIC_KEY": "PUBLIC0001"},
        stderr=subprocess.PIPE,
    )  # fmt: skip
    _, errors = await asyncio.wait_for(process.communicate(), START_SECONDS)
    assert process.returncode == 2
    for part in (
        "KAFKA_BOOTSTRAP_SERVERS", "CONFIRM_SECRET", "CONTROL_DSN",
        "APPROVALTRAIL_SERVER_CALLERS", "TIDB_CLOUD_PRIVATE_KEY",
    ):  # fmt: skip
        assert part in errors.decode()


async def test_a_remote_serves_on_its_port(tmp_path: Path) -> None:
    """G8, X6: with a shared secret and its SQLite ledger, as the only process, `http` serves."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    callers = tmp_path / "callers.toml"
    callers.write_text(
        f'[[caller]]\ntoken_sha256 = "{digest}"\ntenant = "acme"\nprincipal = "ana"\n'
    )
    (tmp_path / "secret").write_text(SECRET)
    async with environment(tmp_path) as (variables, world, _):
        with (tmp_path / "log").open("w") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "approvaltrail.server", "http", "--port", str(port),
                env=variables | {
                    "CONFIRM_SECRET_FILE": str(tmp_path / "secret"),
                    "APPROVALTRAIL_LEDGER": "sqlite",
                    "APPROVALTRAIL_TOKEN_STORE": str(tmp_path / "tokens.db"),
                    "APPROVALTRAIL_SINGLE_PROCESS": "true",
                    "APPROVALTRAIL_SERVER_CALLERS": str(callers),
                },
                stderr=log,
            )  # fmt: skip
            try:
                await _ready(port)
                await _both_steps(port)
            finally:
                process.terminate()
                await asyncio.wait_for(process.wait(), START_SECONDS)
        assert world.performed == [("delete_cluster", "prod-1")]
        (journal,) = list_journals(tmp_path / "journals")
        assert journal.last_sequence == 3
        written = (tmp_path / "log").read_text()
        assert SECRET not in written
        assert TOKEN not in written


async def _ready(port: int) -> None:
    async with asyncio.timeout(START_SECONDS), httpx.AsyncClient() as http:
        while True:
            with contextlib.suppress(httpx.TransportError):
                if (await http.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200:
                    return
            await asyncio.sleep(0.1)


async def _both_steps(port: int) -> None:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
        async with Client(transport, cache=None) as client:
            shown = await called(client, DELETE, clusterId="prod-1")
            done = await called(client, DELETE, clusterId="prod-1", **confirmation(shown))
            assert done["executed"]


async def findings(
    settings: ServerSettings, gate: GateSettings, world: World, **variables: str
) -> dict[str, Finding]:
    """Check a deployment, by name."""
    journal = Path(variables.pop("journal", "/"))
    found = await check(
        settings,
        gate,
        producer=ProducerSettings(
            service="tidb-mcp", kafka_bootstrap_servers="127.0.0.1:9092", journal_dir=journal
        ),
        platforms=MemoryPlatforms(world),
        environment=variables,
    )
    return {finding.name: finding for finding in found}


async def test_check_tells_what_a_deployment_reaches(tmp_path: Path) -> None:
    """B7, S5: reach, boundary, ledger, journal, and where a secret came from, never its value."""
    world, key = small_world()
    settings = server_settings(key, own_keys=True, cluster_allow="1, 2")
    found = await findings(
        settings,
        remote_gate(tmp_path / "tokens.db", confirm_secret=secret(SECRET)),
        world,
        journal=str(tmp_path / "journals"),
        CONFIRM_SECRET_FILE="/run/secrets/confirm",
        TIDB_CLOUD_PRIVATE_KEY=key.private,
    )
    assert "one cluster: 'prod-1'" in found["reach"].text
    assert found["boundary"].text == "1, 2 and no other cluster"
    assert "SQLite" in found["ledger"].text
    assert str(tmp_path / "journals") in found["journal"].text
    assert found["secret CONFIRM_SECRET"].text == "from the file /run/secrets/confirm"
    assert found["secret TIDB_CLOUD_PRIVATE_KEY"].text == "from the variable TIDB_CLOUD_PRIVATE_KEY"
    assert all(finding.good for finding in found.values())
    said = "\n".join(finding.text for finding in found.values())
    assert SECRET not in said
    assert key.private not in said


@pytest.mark.parametrize("case", ["refused", "silent"])
async def test_check_says_what_is_bad(tmp_path: Path, case: str) -> None:
    """B7: a key that the platform refuses, or a platform that is silent, is no good finding."""
    world, key = small_world()
    if case == "refused":
        key = ApiKey(public=key.public, private="another-private-part")
    else:
        world.silent = True
    gate = GateSettings.model_construct(deployment=remote_gate(tmp_path).deployment)
    found = await findings(server_settings(key), gate, world)
    assert not found["reach"].good
    assert not found["start"].good
    assert "CONTROL_DSN" in found["start"].text


def test_check_is_a_command(tmp_path: Path) -> None:
    """`python -m approvaltrail.server.check` prints a line a finding; a bad one fails it."""
    done = subprocess.run(
        [sys.executable, "-m", "approvaltrail.server.check"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "REST_TOKEN": "canary-short"},
        capture_output=True, text=True, timeout=START_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "BAD start" in done.stdout
    assert "from the variable REST_TOKEN" in done.stdout
    assert "canary" not in done.stdout + done.stderr
