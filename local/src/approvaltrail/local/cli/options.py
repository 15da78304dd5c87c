"""Options that several commands share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Answer with one JSON object on stdout.")]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Data folder of `up`. Default: APPROVALTRAIL_DATA, else the user's data folder.",
        show_default=False,
    ),
]
ClickHouse = Annotated[
    str | None,
    typer.Option(
        "--clickhouse",
        metavar="DSN",
        help="The store. Default: CLICKHOUSE_DSN, else the running `up`. Everybody on this machine "
        "can read a command line: give passwords by CLICKHOUSE_DSN or CLICKHOUSE_DSN_FILE.",
        show_default=False,
    ),
]
Kafka = Annotated[
    str | None,
    typer.Option(
        "--kafka",
        metavar="HOST:PORT,…",
        help="The brokers. Default: KAFKA_BOOTSTRAP_SERVERS, else the running `up`.",
        show_default=False,
    ),
]
Tenant = Annotated[
    str | None,
    typer.Option(metavar="TENANT", help="See as this tenant sees: its own events alone."),
]
Last = Annotated[
    str | None, typer.Option(metavar="SPAN", help="The span up to now. [default: 24h]")
]
Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="From this time: ISO 8601 in UTC, or a span before now."),
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Up to this time. [default: now]")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")]
Offset = Annotated[int, typer.Option(min=0, help="How many to pass over first.")]
RequireComplete = Annotated[
    bool,
    typer.Option("--require-complete", help="Exit with 7 unless the answer is proven complete."),
]
