"""`approvaltrail retire`: the operator's word that a producer will not come back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final
from uuid import UUID

import typer

from approvaltrail.local.cli import options
from approvaltrail.local.cli.output import completeness_line, print_json, say
from approvaltrail.local.cli.where import find
from approvaltrail.local.errors import NothingFoundError, StillReportsError
from approvaltrail.schemas.token_shape import without_tokens
from approvaltrail.store.answers import (
    Completeness,
    ProducerCondition,
    ProducerStatus,
    TenantScope,
)
from approvaltrail.store.queries import Queries
from approvaltrail.store.writing import retire_producer

_LONGEST_REASON: Final = 500


def retire(
    producer: Annotated[
        UUID, typer.Argument(metavar="PRODUCER_ID", help="As `approvaltrail pipeline` shows it.")
    ],
    *,
    reason: Annotated[str, typer.Option(help="Why it will not come back; shown beside it.")],
    by: Annotated[
        str, typer.Option(metavar="NAME", help="Who says so; it is written down, not proven.")
    ] = options.LOCAL_USER,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
) -> None:
    """Say that a silent producer will not come back.

    No answer waits for it then. What lacks of it lacks all the same: a gap is no less a gap. One
    that still reports is refused.
    """
    words = reason.strip()
    if not 1 <= len(words) <= _LONGEST_REASON:
        raise typer.BadParameter(f"a reason has 1 to {_LONGEST_REASON} characters",
                                 param_hint="--reason")  # fmt: skip
    now = datetime.now(UTC)
    with find(data=data, clickhouse=clickhouse).open_writer() as store:
        queries = Queries(store)
        one = _find(queries.completeness(TenantScope.everything(), now), str(producer))
        if one.condition is ProducerCondition.LIVE:
            raise StillReportsError(
                f"{one.service} · {one.instance} still reports and is not retired: stop it first"
            )
        retire_producer(
            store,
            str(producer),
            reason=without_tokens(words),
            retired_by=without_tokens(by),
            retired_at=now,
        )
        completeness = queries.completeness(TenantScope.everything(), now)
    if as_json:
        retired = _find(completeness, str(producer))
        print_json({"retired": retired, "retired_by": by, "completeness": completeness})
        return
    say(f"retired {one.service} · {one.instance}; {one.missing} of its events lack")
    completeness_line(completeness)


def _find(completeness: Completeness, producer: str) -> ProducerStatus:
    for one in completeness.producers:
        if one.producer_id == producer:
            return one
    raise NothingFoundError(
        f"no producer {producer} was ever heard from: approvaltrail pipeline lists those that were"
    )


def add_to(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(retire)
