"""What charts stack: outcomes always in one order and colour, causes by how frequent they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from approvaltrail.dashboard import palette, words
from approvaltrail.dashboard.charts import Layer
from approvaltrail.schemas.events import EventType, Reason
from approvaltrail.store.answers import CountRow

OUTCOMES: Final = (
    EventType.ISSUED,
    EventType.ACCEPTED,
    EventType.REFUSED,
    EventType.REPLAYED,
)
_TONES: Final = 6
"""Causes with a colour of their own; the others share one."""


def by_outcome(series: Iterable[CountRow], kinds: Sequence[EventType] = OUTCOMES) -> list[Layer]:
    """Return a layer for each outcome, with what happened of it or not."""
    counts: dict[EventType, Counter[datetime]] = {kind: Counter() for kind in kinds}
    for row in series:
        if row.event_type in counts:
            counts[row.event_type][row.bucket] += row.events
    return [
        Layer(word=palette.sign_of(kind).word, tone=palette.sign_of(kind).tone, counts=found)
        for kind, found in counts.items()
    ]


def by_cause(series: Iterable[CountRow]) -> list[tuple[Reason | None, Layer]]:
    """Return a layer for each of the most frequent causes, and one (None) for the others."""
    counts: defaultdict[Reason, Counter[datetime]] = defaultdict(Counter)
    for row in series:
        if row.reason is not None:
            counts[row.reason][row.bucket] += row.events
    order = sorted(counts, key=lambda reason: (-counts[reason].total(), reason.value))
    drawn: list[tuple[Reason | None, Layer]] = [
        (reason, Layer(word=words.REASONS[reason], tone=f"c{place}", counts=counts[reason]))
        for place, reason in enumerate(order[:_TONES])
    ]
    rest: Counter[datetime] = Counter()
    for reason in order[_TONES:]:
        rest.update(counts[reason])
    if rest:
        drawn.append((None, Layer(word="other causes", tone="unknown", counts=rest)))
    return drawn
