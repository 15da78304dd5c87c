"""Conditions with server-side parameters, and the two steps in which events are read.

Values never become part of a statement's text. Rows are read in two steps, keys before rows: a
query that selects forty columns of everything it sorts reads ten times as much.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from approvaltrail.store.rows import SELECTED, stored_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from approvaltrail.store.answers import StoredEvent, TenantScope, TimeRange
    from approvaltrail.store.connection import Store

    Key = tuple[datetime, UUID]
    Order = tuple[datetime, int, int]

INSTANT: Final = "DateTime64(6, 'UTC')"
KEYS: Final = f"Array(Tuple({INSTANT}, UUID))"
MAXIMUM_PAGE: Final = 1_000
MAXIMUM_OFFSET: Final = 1_000_000
_PART_KEYS: Final = 100
_MOST_PARTS: Final = 2
_HALF: Final = 2**64


@dataclass(slots=True)
class Conditions:
    """A growing WHERE clause."""

    parts: list[str] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)

    def add(self, text: str, /, **parameters: Any) -> None:
        """Add a condition and the parameters that it names."""
        self.parts.append(text)
        self.parameters |= parameters

    def equal(self, column: str, value: str | None, /, *, name: str | None = None) -> None:
        """Hold a column to a value, where one is given."""
        if value is not None:
            name = name or column
            self.add(f"{column} = {{{name}:String}}", **{name: str(value)})

    def during(self, time_range: TimeRange) -> None:
        """Hold `occurred_at` to a range."""
        self.add(
            f"occurred_at >= {{start:{INSTANT}}} AND occurred_at < {{end:{INSTANT}}}",
            start=time_range.start,
            end=time_range.end,
        )

    def within(self, scope: TenantScope) -> None:
        """Hold rows to the viewer's tenant."""
        self.equal("tenant", scope.tenant, name="scope")

    def __str__(self) -> str:
        """Return the condition as it stands after WHERE."""
        return " AND ".join(f"({part})" for part in self.parts) or "true"


def check_page(limit: int, offset: int) -> None:
    """Raise ValueError for a page that would be too big or too far."""
    if not 1 <= limit <= MAXIMUM_PAGE:
        raise ValueError(f"a page holds 1 to {MAXIMUM_PAGE} rows, not {limit}")
    if not 0 <= offset <= MAXIMUM_OFFSET:
        raise ValueError(f"a page starts at most {MAXIMUM_OFFSET} rows down; narrow the range")


def order_of(key: Key) -> Order:
    """Order keys as the store does, which compares the second half of a UUID before the first."""
    at, event_id = key
    return at, event_id.int % _HALF, event_id.int // _HALF


def events_by_key(
    store: Store, keys: Iterable[Key], scope: TenantScope, nonce: str | None = None
) -> dict[Key, StoredEvent]:
    """Read the events with these keys, each once, as far as the viewer may see them.

    Each key costs the reading of a granule of every column, so that many keys are read in parts at
    once; the store itself reads so few rows in one thread.
    """
    wanted = sorted(set(keys), key=lambda key: key[0])
    if not wanted:
        return {}
    where = Conditions()
    where.within(scope)
    where.equal("nonce", nonce)
    parts = max(1, min(_MOST_PARTS, len(wanted) // _PART_KEYS))
    size = -(-len(wanted) // parts)
    answers = store.together(
        *(
            functools.partial(_read, store, wanted[start : start + size], where)
            for start in range(0, len(wanted), size)
        )
    )
    return {key: event for answer in answers for key, event in answer.items()}


def _read(store: Store, keys: Sequence[Key], where: Conditions) -> dict[Key, StoredEvent]:
    # an event that was stored twice comes twice, and is one by its key
    rows = store.query(
        f"SELECT {SELECTED} FROM events "  # noqa: S608 - no value stands in it
        f"PREWHERE (occurred_at, event_id) IN {{keys:{KEYS}}} WHERE {where}",
        {**where.parameters, "keys": list(keys)},
    )
    return {(row["occurred_at"], row["event_id"]): stored_event(row) for row in rows.dicts()}
