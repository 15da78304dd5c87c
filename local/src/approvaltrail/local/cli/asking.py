"""Commands that answer: `trail`, `replays`, `events`, `pipeline`."""

from __future__ import annotations

from typing import Annotated

import typer

from approvaltrail.local.cli import options, show_events, show_pipeline, show_replays, show_trail
from approvaltrail.local.cli.asked import asking, fields_of, given_folder, span
from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.cli.jsonable import jsonable
from approvaltrail.local.cli.labelling import Labelled, label_all, with_label
from approvaltrail.local.cli.output import completeness_line, demand_complete, print_json, say
from approvaltrail.local.cli.pasted import nonce_of
from approvaltrail.schemas.events import EventType, NonceTrust, Outcome, Reason
from approvaltrail.store.answers import EventFilter, ReuseFilter


def trail(
    nonce: Annotated[
        str,
        typer.Argument(metavar="NONCE", help="A nonce, or a whole token; - reads it from stdin."),
    ],
    *,
    tenant: options.Tenant = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
    require_complete: options.RequireComplete = False,
) -> None:
    """Tell all that is known of one nonce, to its last reuse."""
    sought = nonce_of(nonce)
    with asking(data, clickhouse, tenant) as asked:
        found = asked.queries.trail(sought, asked.scope)
        labelled = label_all(asked, found.reuses)
        completeness = asked.completeness()
    known = found.trust is not NonceTrust.NONE or found.claimed_total or found.withheld
    if as_json:
        told = fields_of(found) | {"reuses": _labelled(labelled)}
        print_json({"trail": told, "completeness": completeness})
    else:
        show_trail.show(found, labelled)
        completeness_line(completeness)
        if known:
            say(f"next: approvaltrail export trail {found.nonce}{given_folder(data)}")
        else:
            say(
                f"next: approvaltrail events --last 7d --text {found.nonce[:6]}… finds a part of it"
            )
    if not known:
        raise typer.Exit(ExitCode.NOTHING_FOUND)
    demand_complete(completeness, required=require_complete)


def replays(  # noqa: PLR0913 - one argument an option
    *,
    last: options.Last = None,
    since: options.Since = None,
    until: options.Until = None,
    label: options.Label = None,
    tool: options.Tool = None,
    principal: options.Principal = None,
    strict: options.Strict = False,
    limit: options.Limit = 50,
    offset: options.Offset = 0,
    tenant: options.Tenant = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
    require_complete: options.RequireComplete = False,
) -> None:
    """List tokens that came back, newest first, each with a label.

    A reuse is every presentation of a nonce after its first acceptance, whatever came of it.
    """
    time_range = span(last, since, until)
    narrowed = ReuseFilter(tool=tool, principal=principal, strict_replays_only=strict)
    with asking(data, clickhouse, tenant) as asked:
        # With a label the page tells only the totals: all reuses are read until enough have it.
        page = asked.queries.reuses(time_range, asked.scope, narrowed, limit, offset)
        if label is None:
            labelled = label_all(asked, page.reuses)
        else:
            labelled = with_label(asked, time_range, narrowed, label, offset + limit)[offset:]
        completeness = asked.completeness()
    if as_json:
        told = fields_of(page) | {"reuses": _labelled(labelled), "label": label}
        print_json({"range": time_range, **told, "completeness": completeness})
    else:
        show_replays.show(page, labelled, label, given_folder(data))
        completeness_line(completeness)
    demand_complete(completeness, required=require_complete)


def events(  # noqa: PLR0913 - one argument an option
    *,
    last: options.Last = None,
    since: options.Since = None,
    until: options.Until = None,
    text: options.Words = None,
    event_type: Annotated[EventType | None, typer.Option("--type")] = None,
    reason: Annotated[Reason | None, typer.Option()] = None,
    outcome: Annotated[Outcome | None, typer.Option()] = None,
    nonce: options.Nonce = None,
    nonce_trust: Annotated[NonceTrust | None, typer.Option()] = None,
    tool: options.Tool = None,
    target: options.Target = None,
    principal: options.Principal = None,
    credential_id: options.Credential = None,
    address: options.Address = None,
    limit: options.Limit = 50,
    offset: options.Offset = 0,
    tenant: options.Tenant = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
    require_complete: options.RequireComplete = False,
) -> None:
    """Search all events, newest first, with the exact total."""
    time_range = span(last, since, until)
    narrowed = EventFilter(
        text=text,
        event_type=event_type,
        reason=reason,
        outcome=outcome,
        nonce=nonce_of(nonce) if nonce is not None else None,
        nonce_trust=nonce_trust,
        tool=tool,
        target=target,
        principal=principal,
        credential_id=credential_id,
        address=address,
    )
    with asking(data, clickhouse, tenant) as asked:
        page = asked.queries.events(time_range, asked.scope, narrowed, limit, offset)
        completeness = asked.completeness()
    if as_json:
        print_json({"range": time_range, **fields_of(page), "completeness": completeness})
    else:
        show_events.show(page, given_folder(data))
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
    with asking(data, clickhouse, tenant) as asked:
        completeness = asked.completeness()
        letters = asked.queries.dead_letters(asked.scope, limit)
    if as_json:
        print_json({"completeness": completeness, "dead_letters": letters})
    else:
        show_pipeline.show(completeness, letters)
        completeness_line(completeness)
    demand_complete(completeness, required=require_complete)


def _labelled(labelled: list[Labelled]) -> list[object]:
    return [jsonable(reuse) | {"label": jsonable(label)} for reuse, label in labelled]


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    # A nonce may begin with a dash, which is no option then.
    app.command(context_settings={"ignore_unknown_options": True})(trail)
    app.command()(replays)
    app.command()(events)
    app.command()(pipeline)
