"""A page of reuses as a table, each with its label, its number and what differs."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from approvaltrail.local.cli.output import say, table
from approvaltrail.local.cli.show_events import what
from approvaltrail.local.cli.text import cell, middle
from approvaltrail.local.cli.times import gap, iso
from approvaltrail.store.answers import Reuse, ReusePage
from approvaltrail.store.labels import DEFAULT_THRESHOLDS, Label, LabelKind, label_of, recent_nonces

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


def show(page: ReusePage) -> None:
    """Print the reuses, how many there are, and how many more claim a nonce unproven."""
    if page.reuses:
        table(_COLUMNS, (_row(reuse, page.reuses) for reuse in page.reuses))
    say(
        f"{len(page.reuses)} of {page.total} reuses of {page.tokens} tokens shown; "
        f"{page.claimed} more presentations claimed a nonce without a valid signature"
    )
    if any(not one.trusted for reuse in page.reuses for one in reuse.differences):
        say("a question mark: self-declared, of unknown source, or not known of both calls")
    if page.reuses:
        nonce = page.reuses[0].presentation.event.nonce
        say(f"follow one with: approvaltrail trail {nonce}")


def label(reuse: Reuse, among: tuple[Reuse, ...]) -> Label:
    """Return the label of one reuse among those shown with it."""
    recent = recent_nonces(reuse, among, DEFAULT_THRESHOLDS)
    return label_of(reuse, DEFAULT_THRESHOLDS, recent)


def label_cell(found: Label) -> Text:
    """Return the label with its sign and colour."""
    words, style = LABEL_WORDS[found.kind]
    return Text(words, style=style)


def _row(reuse: Reuse, among: tuple[Reuse, ...]) -> list[Text]:
    event = reuse.presentation.event
    since = gap(reuse.since_acceptance) if reuse.since_acceptance is not None else "unknown"
    differs = ", ".join(one.field + ("" if one.trusted else "?") for one in reuse.differences)
    return [
        cell(iso(event.occurred_at)),
        label_cell(label(reuse, among)),
        cell(f"{reuse.number}/{reuse.total}"),
        what(event),
        cell(f"{event.tool} · {middle(event.target or '–', 32)}"),
        cell(middle(event.principal or "–", 32)),
        cell(since),
        cell(differs or "nothing"),
        cell(event.nonce or "–"),
    ]
