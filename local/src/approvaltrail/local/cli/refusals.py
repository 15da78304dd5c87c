"""`approvaltrail refusals`: what was turned down and why, over time, by whom and for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final

import typer

from approvaltrail.dashboard.words import REASONS
from approvaltrail.local.cli import options
from approvaltrail.local.cli.asked import asking, given_folder, span
from approvaltrail.local.cli.output import (
    completeness_line,
    demand_complete,
    print_json,
    say,
    table,
)
from approvaltrail.local.cli.text import cell
from approvaltrail.local.cli.times import gap, iso
from approvaltrail.schemas.events import EventType, Reason
from approvaltrail.store.answers import EventFilter, Histogram, Ranked

_RANKED: Final = {
    "tool": "tools",
    "principal": "principals",
    "client_address": "addresses",
}
_BAR: Final = 24


def refusals(  # noqa: PLR0913 - one argument an option
    *,
    last: options.Last = None,
    since: options.Since = None,
    until: options.Until = None,
    reason: Annotated[Reason | None, typer.Option(help="Only refusals of this cause.")] = None,
    tool: options.Tool = None,
    principal: options.Principal = None,
    address: options.Address = None,
    tenant: options.Tenant = None,
    data: options.Data = None,
    clickhouse: options.ClickHouse = None,
    as_json: options.Json = False,
    require_complete: options.RequireComplete = False,
) -> None:
    """Count refusals by cause, over time, and by whom and for what."""
    time_range = span(last, since, until)
    wanted = EventFilter(
        event_type=EventType.REFUSED, reason=reason, tool=tool, principal=principal, address=address
    )
    with asking(data, clickhouse, tenant) as asked:
        found = asked.queries.histogram(time_range, asked.scope, wanted)
        ranked = asked.queries.ranking(time_range, asked.scope, wanted, tuple(_RANKED))
        completeness = asked.completeness()
    causes: Counter[Reason | None] = Counter()
    for row in found.series:
        causes[row.reason] += row.events
    if as_json:
        print_json(
            {
                "range": time_range,
                "total": causes.total(),
                "causes": {one.value: n for one, n in causes.most_common() if one is not None},
                "bucket": found.bucket,
                "series": found.series,
                "busiest": ranked,
                "completeness": completeness,
            }
        )
    else:
        _show(found, causes, ranked, given_folder(data))
        completeness_line(completeness)
    demand_complete(completeness, required=require_complete)


def _show(
    found: Histogram,
    causes: Counter[Reason | None],
    ranked: Mapping[str, Sequence[Ranked]],
    folder: str,
) -> None:
    total = causes.total()
    if not total:
        say("No refusal in this range; look further back with --last 7d")
        return
    say(f"{total} refusals")
    table(
        ("cause", "refusals", ""),
        ((cell(_word(one)), cell(n), cell(_bar(n, total))) for one, n in causes.most_common()),
    )
    say(f"over time, {gap(found.bucket)} a line")
    buckets: dict[datetime, Counter[Reason | None]] = {}
    for row in found.series:
        if row.events:
            buckets.setdefault(row.bucket, Counter())[row.reason] += row.events
    table(
        ("from (UTC)", "refusals", "causes"),
        (
            (cell(iso(at)), cell(counted.total()), cell(_listed(counted)))
            for at, counted in sorted(buckets.items())
        ),
    )
    for name, title in _RANKED.items():
        if ranked.get(name):
            say(f"refused most, {title}: "
                + ", ".join(f"{one.name} {one.events}" for one in ranked[name]))  # fmt: skip
    worst = next((one for one, _ in causes.most_common() if one is not None), None)
    if worst is not None:
        say(f"next: approvaltrail events --type refused --reason {worst.value}{folder}")


def _listed(counted: Counter[Reason | None]) -> str:
    return ", ".join(f"{_word(one)} {n}" for one, n in counted.most_common())


def _word(reason: Reason | None) -> str:
    return REASONS[reason] if reason is not None else "cause unknown"


def _bar(count: int, total: int) -> str:
    return "█" * max(1, round(_BAR * count / total))


def add_to(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(refusals)
