"""`approvaltrail journal`: the journals of a folder, and what they still owe to the broker."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from approvaltrail.local.cli import options
from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.cli.output import console, print_json, say, table
from approvaltrail.local.cli.text import cell
from approvaltrail.local.cli.where import find
from approvaltrail.producer.inspection import (
    Condition,
    JournalReport,
    drain_journals,
    list_journals,
)
from approvaltrail.producer.settings import ProducerSettings, default_journal_dir

app = typer.Typer(
    help="Journals: list them, drain them.", no_args_is_help=True, rich_markup_mode=None
)

_Directory = Annotated[
    Path | None,
    typer.Argument(
        metavar="DIR",
        help="Where the journals are. Default: APPROVALTRAIL_JOURNAL_DIR, else the user's folder.",
        envvar="APPROVALTRAIL_JOURNAL_DIR",
        show_default=False,
        show_envvar=False,
    ),
]
_COLUMNS = ("service", "instance", "condition", "last", "delivered", "pending", "bytes", "producer")


@app.command("list")
def list_command(directory: _Directory = None, *, as_json: options.Json = False) -> None:
    """List journals, and how much of each the broker has not acknowledged."""
    reports = list_journals(directory or default_journal_dir())
    if as_json:
        print_json({"journals": [{**asdict(one), "pending": one.pending} for one in reports]})
        return
    if reports:
        table(_COLUMNS, map(_row, reports))
    say(f"{len(reports)} journals, {sum(one.pending for one in reports)} events pending")


@app.command()
def drain(
    directory: _Directory = None,
    *,
    timeout_seconds: Annotated[
        float, typer.Option("--timeout", min=1, metavar="SECONDS", help="Give up after so long.")
    ] = 60.0,
    data: options.Data = None,
    kafka: options.Kafka = None,
    as_json: options.Json = False,
) -> None:
    """Send on what stopped servers left in their journals; running servers send their own."""
    where = find(data=data, kafka=kafka)
    settings = ProducerSettings.from_environment(
        service="drain",
        kafka_bootstrap_servers=where.need_kafka(),
        topic_prefix=where.topic_prefix,
    )
    with _progress() as shown:
        task = shown.add_task("sending", total=None)
        report = drain_journals(
            directory or default_journal_dir(),
            settings,
            timeout_seconds=timeout_seconds,
            on_progress=lambda sent, total: shown.update(task, completed=sent, total=total),
        )
    if as_json:
        print_json(report)
    else:
        say(
            f"{report.sent} events of {report.journals} journals sent, {report.pending} pending, "
            f"{report.in_use} journals in use by running servers"
        )
        if report.problem is not None:
            say(f"pending because: {report.problem}; what is pending stays on disk, try again")
    if report.pending:
        raise typer.Exit(ExitCode.FAILED_CHECK)


def _progress() -> Progress:
    columns = (TextColumn("sending"), BarColumn(), MofNCompleteColumn())
    shown = console(stderr=True)
    return Progress(*columns, console=shown, disable=not shown.is_terminal, transient=True)


def _row(one: JournalReport) -> list[Text]:
    bad = one.condition is Condition.DAMAGED
    return [
        cell(one.service or "–"),
        cell(one.instance or "–"),
        cell(one.condition.value, "bold red" if bad else ""),
        cell(one.last_sequence),
        cell(one.relayed_sequence),
        cell(one.pending, "yellow" if one.pending else ""),
        cell(one.bytes_on_disk),
        cell(one.producer_id),
    ]
