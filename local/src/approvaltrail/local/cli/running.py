"""Commands that run: `up`, `demo`, `smoke`, `sink`, `dashboard`."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from approvaltrail.local.cli import options
from approvaltrail.local.cli.display import Display
from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.cli.output import note, print_json, say
from approvaltrail.local.cli.where import find
from approvaltrail.local.settings import LocalSettings
from approvaltrail.local.up import Running, stay_up

_Port = Annotated[int | None, typer.Option(min=1, max=65535, help="Default: a free one.")]


def up(
    *,
    data: options.Data = None,
    broker_port: _Port = None,
    engine_port: _Port = None,
    dashboard_port: _Port = None,
    supervisor_port: _Port = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Say where everything is as one JSON object.")
    ] = False,
) -> None:
    """Run broker, engine, sink and dashboard until Ctrl-C.

    With KAFKA_BOOTSTRAP_SERVERS or CLICKHOUSE_DSN set, that part is not started: yours is used.
    """
    settings = LocalSettings.from_environment(
        data=data,
        broker_port=broker_port,
        engine_port=engine_port,
        dashboard_port=dashboard_port,
        supervisor_port=supervisor_port,
    )
    with Display() as display:

        def tell(running: Running) -> None:
            if as_json:
                print_json(_addresses(running))
                return
            display.note(f"data {running.folder.root}, logs {running.folder.logs}")
            display.note(
                f"embed with KAFKA_BOOTSTRAP_SERVERS={running.run.kafka_bootstrap_servers}"
            )
            display.note("Ctrl-C stops everything")
            say(f"dashboard {running.run.dashboard_url}")

        stay_up(settings, display, when_up=tell)


def demo(
    *,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep its data here. Default: a temporary folder."),
    ] = None,
    dashboard_port: _Port = None,
    seed: Annotated[int, typer.Option(help="Of the ordinary traffic.")] = 1,
) -> None:
    """Run everything with demo traffic and a few incidents."""
    from approvaltrail.local.demo.run import run_demo  # noqa: PLC0415 - pulls the gate in

    with Display() as display:
        run_demo(data=data, dashboard_port=dashboard_port, seed=seed, display=display, say=say)


def smoke(
    *,
    events: Annotated[int, typer.Option(min=100, max=1_000_000, help="At least so many.")] = 2000,
    seed: Annotated[int | None, typer.Option(help="Default: a random one, printed.")] = None,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep all its files in this new folder.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Prove the whole way: nothing lost, nothing twice, no token."""
    from approvaltrail.local.smoke.run import run_smoke  # noqa: PLC0415 - pulls the gate in

    chosen = secrets.randbelow(2**31) if seed is None else seed
    note(f"smoke: {events} events, seed {chosen}")
    report = run_smoke(events=events, seed=chosen, keep=keep, say=note)
    if as_json:
        print_json(report.figures)
    else:
        for name, value in report.figures.items():
            say(f"{name:18} {value}")
    for failure in report.failures:
        note(f"FAILED: {failure}")
    if report.failures:
        raise typer.Exit(ExitCode.FAILED_CHECK)
    note("all conditions hold")


def sink(
    *,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    kafka: options.Kafka = None,
) -> None:
    """Run one sink in the foreground; any number may share the work."""
    where = find(data=data, clickhouse=clickhouse, kafka=kafka)
    _become(
        "approvaltrail.consumers.sink",
        [],
        {
            "APPROVALTRAIL_KAFKA_BOOTSTRAP_SERVERS": where.need_kafka(),
            "APPROVALTRAIL_CLICKHOUSE_DSN": where.need_writer_dsn(),
            "APPROVALTRAIL_TOPIC_PREFIX": where.topic_prefix,
        },
    )


def dashboard(
    *,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8501,
) -> None:
    """Run one dashboard in the foreground."""
    where = find(data=data, clickhouse=clickhouse)
    dsn = where.reader_dsn or where.need_writer_dsn()
    _become("approvaltrail.dashboard", ["--port", str(port)], {"APPROVALTRAIL_CLICKHOUSE_DSN": dsn})


def _become(module: str, arguments: list[str], environment: dict[str, str]) -> None:
    """Replace this process: signals and exit codes are then the program's own."""
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, "-m", module, *arguments]
    os.execve(sys.executable, command, {**os.environ, **environment})  # noqa: S606 - our own


def _addresses(running: Running) -> dict[str, object]:
    """Return the addresses without any password: those stand in the run file."""
    run = running.run
    return {
        "pid": run.pid,
        "data": running.folder.root,
        "run_file": running.folder.run_file,
        "kafka_bootstrap_servers": run.kafka_bootstrap_servers,
        "dashboard_url": run.dashboard_url,
        "supervisor_url": run.supervisor_url,
        "sink_health_url": run.sink_health_url,
    }


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (up, demo, smoke, sink, dashboard):
        app.command()(command)
