"""A message that the broker took and no client of ours can read: its headers' names are not UTF-8.

The broker looks at no header, and some clients write any bytes there. What can be said of such a
message is where it stands; its bytes stay there, for the topic of events keeps everything. What
stands behind it in its own batch, which one client wrote, cannot be read either.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Stands in for such a message, with its position."""

    topic: str
    partition: int
    offset: int
    key: None = None
    value: None = None
    headers: tuple[tuple[str, bytes], ...] = ()
