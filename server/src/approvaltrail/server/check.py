"""What a deployment would do, told before it does it: `approvaltrail server check`.

It prints reach, boundary, ledger, journal, and where each secret comes from, never its value.
Nothing is changed, and no tool is called.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from approvaltrail.gate import GateSettings, LedgerKind
from approvaltrail.gate.startup import ledger_kind
from approvaltrail.producer import ProducerSettings
from approvaltrail.schemas.environment import variable_names
from approvaltrail.schemas.errors import SettingsError
from approvaltrail.server.errors import StartRefusedError
from approvaltrail.server.platform import HttpPlatforms, Platforms
from approvaltrail.server.reach import reach_of
from approvaltrail.server.settings import ServerSettings
from approvaltrail.server.startup import check_server

REACH_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the answer."""

    name: str
    text: str
    good: bool = True


async def check(
    settings: ServerSettings,
    gate: GateSettings,
    *,
    producer: ProducerSettings | None,
    platforms: Platforms | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """Look at a deployment.

    Args:
        settings: the server's.
        gate: the gate's.
        producer: the producer's; None where it cannot be configured.
        platforms: the cluster platform; by default its HTTP API.
        environment: where the settings came from, to say which variable or file gave a secret.
    """
    return (
        _start(settings, gate),
        await _reach(settings, platforms),
        _boundary(settings),
        _callers(settings, gate),
        _ledger(gate),
        _journal(producer),
        *_secrets(settings, gate, os.environ if environment is None else environment),
    )


def _start(settings: ServerSettings, gate: GateSettings) -> Finding:
    try:
        templates = check_server(settings, gate)
    except StartRefusedError as error:
        return Finding(name="start", text="refused: " + " | ".join(error.problems), good=False)
    declared = sorted({template.cluster for template in templates})
    bound = f", bound to {', '.join(declared)}" if declared else ""
    kind = "writable" if gate.writable else "read-only"
    return Finding(
        name="start",
        text=f"allowed: {gate.deployment.value}, {kind}, {len(templates)} templates{bound}",
    )


async def _reach(settings: ServerSettings, platforms: Platforms | None) -> Finding:
    key = settings.platform_key
    if key is None:
        own = "callers bring their own keys" if settings.own_keys else "there is none"
        return Finding(name="reach", text=f"no platform key of the server's own: {own}")
    given = platforms or HttpPlatforms(settings.addresses, timeout_seconds=REACH_SECONDS)
    try:
        reach = await reach_of(given.under(key))
    finally:
        if platforms is None:
            await given.close()
    return Finding(name="reach", text=reach.statement(), good=reach.answered and not reach.refused)


def _boundary(settings: ServerSettings) -> Finding:
    allowed = sorted(settings.boundary)
    text = (
        f"{', '.join(allowed)} and no other cluster"
        if allowed
        else "none: whatever the key reaches"
    )
    return Finding(name="boundary", text=text)


def _callers(settings: ServerSettings, gate: GateSettings) -> Finding:
    ways = [
        (settings.callers is not None, "tokens in the callers' file"),
        (settings.own_keys, "platform keys of their own"),
        (settings.rest and settings.rest_token is not None, "the static token of REST"),
    ]
    named = [text for there, text in ways if there]
    local = f"the user of this machine ({gate.deployment.value})"
    return Finding(name="callers", text=", ".join(named) or local)


def _ledger(gate: GateSettings) -> Finding:
    match ledger_kind(gate):
        case LedgerKind.MEMORY:
            text = "in the memory of this process"
        case LedgerKind.SQLITE:
            text = f"SQLite, {gate.token_store}: shared by this machine's processes"
        case LedgerKind.CONTROL:
            text = f"the control database ({_scheme(gate)})"
    return Finding(name="ledger", text=text)


def _scheme(gate: GateSettings) -> str:
    dsn = "" if gate.control_dsn is None else gate.control_dsn.get_secret_value()
    return dsn.partition(":")[0] or "not named"


def _journal(producer: ProducerSettings | None) -> Finding:
    if producer is None:
        return Finding(
            name="journal",
            text="not configured, and nothing runs unrecorded: set KAFKA_BOOTSTRAP_SERVERS",
            good=False,
        )
    where: Path = producer.journal_dir
    there = where if where.exists() else next(p for p in where.parents if p.exists())
    good = os.access(there, os.W_OK)
    state = "writable" if good else "NOT writable"
    return Finding(
        name="journal", text=f"{where} ({state}), to {producer.kafka_bootstrap_servers}", good=good
    )


def _secrets(
    settings: ServerSettings, gate: GateSettings, environment: Mapping[str, str]
) -> tuple[Finding, ...]:
    asked: tuple[tuple[ServerSettings | GateSettings, str, str], ...] = (
        (gate, "confirm_secret", "generated for this process; no other can verify its tokens"),
        (gate, "control_dsn", "not set"),
        (settings, "credential_secret", "not set; CONFIRM_SECRET serves"),
        (settings, "platform_private_key", "not set"),
        (settings, "rest_token", "not set"),
        (settings, "tidb_sql_password", "not set"),
    )
    return tuple(_secret(owner, field, absent, environment) for owner, field, absent in asked)


def _secret(
    owner: ServerSettings | GateSettings, field: str, absent: str, environment: Mapping[str, str]
) -> Finding:
    names = variable_names(type(owner).model_fields[field], field)
    name = f"secret {names[0]}"
    if getattr(owner, field) is None:
        return Finding(name=name, text=absent)
    given = {key.upper(): value for key, value in environment.items()}
    for variable in names:
        if variable in given:
            return Finding(name=name, text=f"from the variable {variable}")
        if f"{variable}_FILE" in given:
            return Finding(name=name, text=f"from the file {given[f'{variable}_FILE']}")
    return Finding(name=name, text="given by the program")


def report(findings: tuple[Finding, ...], write: Callable[[str], object]) -> bool:
    """Write the findings; say whether all are good."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        write(f"{'ok ' if finding.good else 'BAD'} {finding.name:<{width}}  {finding.text}\n")
    return all(finding.good for finding in findings)


def producer_settings(settings: ServerSettings) -> ProducerSettings | None:
    """Read the producer's settings; None where they cannot be used."""
    try:
        return ProducerSettings.from_environment(service=settings.service)
    except SettingsError:
        return None


def main() -> int:
    """Check the deployment that the environment describes; 0 where all is good."""
    try:
        settings = ServerSettings.from_environment()
        gate = GateSettings.from_environment()
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    findings = asyncio.run(check(settings, gate, producer=producer_settings(settings)))
    return 0 if report(findings, sys.stdout.write) else 1


if __name__ == "__main__":
    sys.exit(main())
