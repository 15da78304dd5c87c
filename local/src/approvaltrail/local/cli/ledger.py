"""`approvaltrail ledger`: make the ledger's tables, and compare its claims with the record."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, cast

import typer
from rich.text import Text

from approvaltrail.gate.clock import SystemClock
from approvaltrail.gate.ledger.protocol import ClaimsListing
from approvaltrail.gate.ledger.sql import migrate_ledger
from approvaltrail.gate.reconcile import SETTLED_AFTER, Reconciliation, reconcile
from approvaltrail.gate.settings import GateSettings, LedgerKind
from approvaltrail.gate.startup import ledger_kind, open_ledger
from approvaltrail.local.cli import options, show_ledger
from approvaltrail.local.cli.asked import asking, fields_of, span
from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.cli.output import (
    completeness_line,
    demand_complete,
    print_json,
    say,
    table,
)
from approvaltrail.local.cli.text import cell
from approvaltrail.local.cli.times import iso
from approvaltrail.local.cli.where import find
from approvaltrail.schemas.errors import SettingsError
from approvaltrail.schemas.events import ApprovalEvent, EventType, NonceTrust
from approvaltrail.store.answers import EventFilter, TenantScope, TimeRange
from approvaltrail.store.queries import Queries

app = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
)
_PAGE: Final = 500
_MICROSECOND: Final = timedelta(microseconds=1)
_COLUMNS: Final = ("finding", "nonce", "at", "tool", "claim or event")


@app.callback()
def ledger(  # noqa: PLR0913 - one argument an option
    context: typer.Context,
    *,
    last: options.Last = None,
    since: options.Since = None,
    until: options.Until = None,
    tenant: options.Tenant = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
    require_complete: options.RequireComplete = False,
) -> None:
    """Balance nonces issued with what became of them; reconcile.

    By itself it answers from the store, as the dashboard's Ledger page. Options of a subcommand
    stand behind its name.
    """
    if context.invoked_subcommand is not None:
        _no_options(last, since, until, tenant, data, clickhouse, as_json, require_complete)
        return
    time_range = span(last, since, until)
    with asking(data, clickhouse, tenant) as asked:
        queries, scope = asked.queries, asked.scope
        balance = queries.ledger_balance(time_range, scope, asked.now)
        claims = queries.ledger_claims(time_range, scope)
        outages = queries.ledger_outages(time_range, scope)
        completeness = asked.completeness()
    if as_json:
        issued = {"issued": balance.issued, **fields_of(balance)}
        print_json(
            {
                "range": time_range,
                "balance": issued,
                "claims": claims,
                "outages": outages,
                "completeness": completeness,
            }
        )
    else:
        show_ledger.show(balance, claims, outages, completeness)
        completeness_line(completeness)
    demand_complete(completeness, required=require_complete)


def _no_options(*given: object) -> None:
    if any(given):
        raise typer.BadParameter("options of a subcommand stand behind its name")


@app.command()
def migrate(
    *,
    anew: Annotated[
        bool,
        typer.Option(
            "--anew",
            help="Begin the ledger's memory now, as after a restored backup: tokens issued before "
            "are refused.",
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Make the tables in the control database that CONTROL_DSN names, where they are missing."""
    settings = GateSettings.from_environment()
    if settings.control_dsn is None:
        raise SettingsError("CONTROL_DSN: is not set; it names the control database")
    done = migrate_ledger(settings.control_dsn.get_secret_value(), anew=anew)
    if as_json:
        print_json({"done": done})
        return
    for sentence in done:
        say(sentence)
    if not done:
        say("the ledger's tables stand")


@app.command("reconcile")
def reconcile_command(
    *,
    last: options.Last = None,
    since: options.Since = None,
    until: options.Until = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
) -> None:
    """Compare what the ledger spent with the acceptances that the store holds, both ways."""
    now = datetime.now(UTC)
    time_range = span(last, since, until)
    settings = GateSettings.from_environment()
    if ledger_kind(settings) is LedgerKind.MEMORY:
        raise SettingsError(
            "APPROVALTRAIL_LEDGER: a ledger in memory is gone with its process; reconcile a "
            "SQLite store (APPROVALTRAIL_TOKEN_STORE) or a control database (CONTROL_DSN)"
        )
    ledger = open_ledger(settings, SystemClock())
    with find(data=data, clickhouse=clickhouse).open_reader() as store:
        queries = Queries(store)
        found = reconcile(
            cast("ClaimsListing", ledger),
            recorded(queries, time_range),
            start=time_range.start,
            end=time_range.end,
            now=now,
        )
        completeness = queries.completeness(TenantScope.everything(), now)
    ledger.close()
    if as_json:
        print_json({"reconciliation": found, "agrees": found.agrees, "completeness": completeness})
    else:
        _tell(found)
        completeness_line(completeness)
    if not found.agrees:
        raise typer.Exit(ExitCode.FAILED_CHECK)


def recorded(queries: Queries, time_range: TimeRange) -> Iterator[ApprovalEvent]:
    """Yield the stored acceptances and verified refusals of the range and its margins.

    Pages go back in time by the last event's instant, which is read again: repetitions do no harm.
    """
    for event_type in (EventType.ACCEPTED, EventType.REFUSED):
        narrowed = EventFilter(event_type=event_type, nonce_trust=NonceTrust.VERIFIED)
        end = time_range.end + SETTLED_AFTER
        offset = 0
        while True:
            part = TimeRange(time_range.start - SETTLED_AFTER, end)
            page = queries.events(part, TenantScope.everything(), narrowed, _PAGE, offset)
            for stored in page.events:
                yield stored.event
            if len(page.events) < _PAGE:
                break
            oldest = page.events[-1].event.occurred_at + _MICROSECOND
            offset = offset + _PAGE if oldest == end else 0
            end = oldest


def _tell(found: Reconciliation) -> None:
    rows = [
        *(
            _row("spent, not recorded", one.nonce, one.spent_at, one.tool, one.claim_id)
            for one in found.spent_not_recorded
        ),
        *(
            _row("recorded, not spent", one.nonce, one.accepted_at, one.tool, one.event_id)
            for one in found.recorded_not_spent
        ),
        *(
            _row(
                "spent by another event", one.nonce, one.accepted_at, one.tool, pair.claim.claim_id
            )
            for pair in found.contradictions
            for one in (pair.acceptance,)
        ),
    ]
    if rows:
        table(_COLUMNS, rows)
    say(
        f"{found.matched} claims and acceptances name each other; {len(found.explained)} claims "
        f"belong to refusals; {len(found.not_provable)} acceptances are older than the ledger's "
        f"memory; {found.unsettled} are too young to judge"
    )
    say("ledger and record agree" if found.agrees else "ledger and record do not agree")


def _row(finding: str, nonce: str, at: datetime, tool: str, identity: str) -> tuple[Text, ...]:
    return (Text(finding), cell(nonce), Text(iso(at)), cell(tool), Text(identity))
