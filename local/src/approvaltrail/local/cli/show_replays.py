"""A page of reuses as a table, each with its label, its number and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from approvaltrail.dashboard.words import field
from approvaltrail.local.cli.labelling import Labelled
from approvaltrail.local.cli.output import say, table
from approvaltrail.local.cli.show_events import what
from approvaltrail.local.cli.text import cell, middle
from approvaltrail.local.cli.times import gap, iso
from approvaltrail.store.answers import Reuse, ReusePage
from approvaltrail.store.labels import Label, LabelKind

LABEL_WORDS: Final = {
    LabelKind.NEEDS_REVIEW: ("▲ needs review", "bold red"),
    LabelKind.NOT_ENOUGH_KNOWN: ("? not enough known", "bright_black"),
    LabelKind.CONSISTENT_WITH_RETRY: ("↻ consistent with a retry", "green"),
}
_COLUMNS: Final = (
    "time (UTC)",
    "label",
    "no.",
    "outcome",
    "tool · target",
    "presented by",
    "after acceptance",
    "differs",
    "nonce",
)


def show(
    page: ReusePage, labelled: Sequence[Labelled], wanted: LabelKind | None, folder: str
) -> None:
    """Print the reuses, how many there are, and how many more claim a nonce unproven."""
    if labelled:
        table(_COLUMNS, (_row(reuse, found) for reuse, found in labelled))
    elif not page.total:
        say("No token came back in this range; look further back with --last 7d")
    about = "" if wanted is None else f" that are {LABEL_WORDS[wanted][0][2:]}"
    among = f"{len(labelled)}{about}, of" if wanted is not None else f"{len(labelled)} of"
    say(
        f"{among} {page.total} reuses of {page.tokens} tokens shown; "
        f"{page.claimed} more presentations claimed a nonce without a valid signature"
    )
    if any(not one.trusted for reuse, _ in labelled for one in reuse.differences):
        say("a question mark: self-declared, of unknown source, or not known of both calls")
    if labelled:
        first = next(
            (one for one in labelled if one[1].kind is LabelKind.NEEDS_REVIEW), labelled[0]
        )
        say(f"next: approvaltrail trail {first[0].presentation.event.nonce}{folder}")


def label_cell(found: Label) -> Text:
    """Return the label with its sign and colour."""
    words, style = LABEL_WORDS[found.kind]
    return Text(words, style=style)


def _row(reuse: Reuse, found: Label) -> list[Text]:
    event = reuse.presentation.event
    since = gap(reuse.since_acceptance) if reuse.since_acceptance is not None else "unknown"
    differs = ", ".join(
        field(one.field) + ("" if one.trusted else "?") for one in reuse.differences
    )
    return [
        cell(iso(event.occurred_at)),
        label_cell(found),
        cell(f"{reuse.number}/{reuse.total}"),
        what(event),
        cell(f"{event.tool} · {middle(event.target or '–', 32)}"),
        cell(middle(event.principal or "–", 32)),
        cell(since),
        cell(differs or "nothing"),
        cell(event.nonce or "–"),
    ]
