"""Options that several commands share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from approvaltrail.store.labels import LabelKind

LOCAL_USER: Final = "unauthenticated local user"
"""Who acts, where nobody said who: the command line signs nobody in."""


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
    str | None,
    typer.Option(metavar="SPAN", help="The span up to now, such as 15m, 24h, 7d. [default: 24h]"),
]
Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="From this time: ISO 8601 in UTC, or a span before now."),
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Up to this time. [default: now]")]
Words = Annotated[
    str | None,
    typer.Option("--text", help="In target, principal, nonce, summary or client name."),
]
Nonce = Annotated[str | None, typer.Option(help="Of this nonce; a whole token will do.")]
Tool = Annotated[str | None, typer.Option(help="Of this tool.")]
Target = Annotated[str | None, typer.Option(help="For this target.")]
Principal = Annotated[str | None, typer.Option(help="By this principal.")]
Credential = Annotated[str | None, typer.Option(help="With this credential.")]
Address = Annotated[str | None, typer.Option(help="From this address.")]
Label = Annotated[LabelKind | None, typer.Option(help="Only reuses of which this may be said.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Only what the gate itself called a replay.")
]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")]
Offset = Annotated[int, typer.Option(min=0, help="How many to pass over first.")]
RequireComplete = Annotated[
    bool,
    typer.Option("--require-complete", help="Exit with 7 unless the answer is proven complete."),
]
