"""Commands that answer: `trail`, `replays`, `events`, `pipeline`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer

from approvaltrail.local.cli import options, show_events, show_pipeline, show_replays, show_trail
from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.cli.output import completeness_line, demand_complete, print_json
from approvaltrail.local.cli.times import range_of
from approvaltrail.local.cli.where import find
from approvaltrail.schemas import bounds
from approvaltrail.schemas.events import EventType, NonceTrust, Outcome, Reason
from approvaltrail.store.answers import (
    Completeness,
    EventFilter,
    ReuseFilter,
    TenantScope,
    TimeRange,
)
from approvaltrail.store.queries import Queries

_Text = Annotated[str | None, typer.Option()]


@dataclass(frozen=True, slots=True)
class _Asking:
    queries: Queries
    scope: TenantScope
    now: datetime

    def completeness(self) -> Completeness:
        return self.queries.completeness(self.scope, self.now)


@contextlib.contextmanager
def _asking(
    data: options.Data, clickhouse: options.ClickHouse, tenant: str | None
) -> Iterator[_Asking]:
    store = find(data=data, clickhouse=clickhouse).open_reader()
    try:
        scope = TenantScope.only(tenant) if tenant else TenantScope.everything()
        yield _Asking(Queries(store), scope, datetime.now(UTC))
    finally:
        store.close()


def _range(last: str | None, since: str | None, until: str | None) -> TimeRange:
    try:
        return range_of(last=last, since=since, until=until, now=datetime.now(UTC))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def trail(
    nonce: Annotated[str, typer.Argument(metavar="NONCE", help="As an event or a page shows it.")],
    *,
    tenant: options.Tenant = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
    require_complete: options.RequireComplete = False,
) -> None:
    """Tell everything known of one nonce: issuance, acceptance, completion, every reuse."""
    if not 1 <= len(nonce) <= bounds.NONCE:
        raise typer.BadParameter(
            f"a nonce has 1 to {bounds.NONCE} characters, this has {len(nonce)}",
            param_hint="NONCE",
        )
    with _asking(data, clickhouse, tenant) as asking:
        found = asking.queries.trail(nonce, asking.scope)
        completeness = asking.completeness()
    known = found.trust is not NonceTrust.NONE or found.claimed_total or found.withheld
    if as_json:
        print_json({"trail": found, "completeness": completeness})
    else:
        show_trail.show(found)
        completeness_line(completeness)
    if not known:
        raise typer.Exit(ExitCode.NOTHING_FOUND)
    demand_complete(completeness, required=require_complete)


def replays(  # noqa: PLR0913 - one argument an option
    *,
    last: options.Last = None,
    since: options.Since = None,
    until: options.Until = None,
    tool: _Text = None,
    principal: _Text = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Only what the gate itself called a replay.")
    ] = False,
    limit: options.Limit = 50,
    offset: options.Offset = 0,
    tenant: options.Tenant = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
    require_complete: options.RequireComplete = False,
) -> None:
    """List reuses: every presentation of a nonce after its first acceptance, newest first."""
    time_range = _range(last, since, until)
    narrowed = ReuseFilter(tool=tool, principal=principal, strict_replays_only=strict)
    with _asking(data, clickhouse, tenant) as asking:
        page = asking.queries.reuses(time_range, asking.scope, narrowed, limit, offset)
        completeness = asking.completeness()
    if as_json:
        print_json({"range": time_range, **_fields(page), "completeness": completeness})
    else:
        show_replays.show(page)
        completeness_line(completeness)
    demand_complete(completeness, required=require_complete)


def events(  # noqa: PLR0913 - one argument an option
    *,
    last: options.Last = None,
    since: options.Since = None,
    until: options.Until = None,
    text: Annotated[
        str | None, typer.Option(help="In target, principal, nonce, summary or client name.")
    ] = None,
    event_type: Annotated[EventType | None, typer.Option("--type")] = None,
    reason: Annotated[Reason | None, typer.Option()] = None,
    outcome: Annotated[Outcome | None, typer.Option()] = None,
    nonce: _Text = None,
    nonce_trust: Annotated[NonceTrust | None, typer.Option()] = None,
    tool: _Text = None,
    target: _Text = None,
    principal: _Text = None,
    credential_id: _Text = None,
    address: _Text = None,
    limit: options.Limit = 50,
    offset: options.Offset = 0,
    tenant: options.Tenant = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
    require_complete: options.RequireComplete = False,
) -> None:
    """Search all events, newest first, with the exact total."""
    time_range = _range(last, since, until)
    narrowed = EventFilter(
        text=text,
        event_type=event_type,
        reason=reason,
        outcome=outcome,
        nonce=nonce,
        nonce_trust=nonce_trust,
        tool=tool,
        target=target,
        principal=principal,
        credential_id=credential_id,
        address=address,
    )
    with _asking(data, clickhouse, tenant) as asking:
        page = asking.queries.events(time_range, asking.scope, narrowed, limit, offset)
        completeness = asking.completeness()
    if as_json:
        print_json({"range": time_range, **_fields(page), "completeness": completeness})
    else:
        show_events.show(page)
        completeness_line(completeness)
    demand_complete(completeness, required=require_complete)


def pipeline(
    *,
    tenant: options.Tenant = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    limit: options.Limit = 20,
    as_json: options.Json = False,
    require_complete: options.RequireComplete = False,
) -> None:
    """Show each producer, what lacks, and the dead letters."""
    with _asking(data, clickhouse, tenant) as asking:
        completeness = asking.completeness()
        letters = asking.queries.dead_letters(asking.scope, limit)
    if as_json:
        print_json({"completeness": completeness, "dead_letters": letters})
    else:
        show_pipeline.show(completeness, letters)
        completeness_line(completeness)
    demand_complete(completeness, required=require_complete)


def _fields(page: object) -> dict[str, object]:
    return {name: getattr(page, name) for name in type(page).__dataclass_fields__}  # type: ignore[attr-defined]


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    # A nonce may begin with a dash, which is no option then.
    app.command(context_settings={"ignore_unknown_options": True})(trail)
    app.command()(replays)
    app.command()(events)
    app.command()(pipeline)
