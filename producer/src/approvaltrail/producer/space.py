"""How full the journal is, and who may still write: the bound, and what happens at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_ROW_BYTES: Final = 32
"""What SQLite spends on a row beside its texts."""
_OVERFLOW_BYTES: Final = 4_000
"""A longer row continues on pages of its own."""
_PAGE_BYTES: Final = 4_096


def row_bytes(body: bytes, key: bytes | None) -> int:
    """Return what a row may take in the file: its bytes, and what it may leave of a page."""
    size = len(body) + (len(key) if key else 0) + _ROW_BYTES
    return size + size // 3 + (_PAGE_BYTES if size > _OVERFLOW_BYTES else 0)


@dataclass(slots=True)
class Space:
    """Room in the journal's file, in bytes.

    Events may use the limit less a reserve: seals, positions and sums of unrecorded refusals must
    find room when events no longer do. `used` is the writer's estimate, measured now and then.
    """

    limit: int
    unverified_share: float
    used: int = 0

    @property
    def events_limit(self) -> int:
        """Where events stop."""
        return self.limit - max(16 * _PAGE_BYTES, self.limit // 64)

    @property
    def unverified_limit(self) -> int:
        """Where unverified refusals stop."""
        return min(int(self.limit * self.unverified_share), self.events_limit)

    @property
    def headroom(self) -> int:
        """Room that `check` asks for, so that a claim it let through can also be recorded."""
        return min(256 * 1024, self.limit // 16)

    @property
    def pressure(self) -> int:
        """Where delivered events are deleted before their time, the oldest first."""
        return int(self.limit * 0.7 * min(1.0, self.unverified_share / 0.8))

    @property
    def fill(self) -> float:
        """Used share of the limit, 0 to 1."""
        return min(1.0, self.used / self.limit)

    def admits(self, size: int, *, unverified: bool) -> bool:
        """Say whether so many more bytes may be written, counting those that wait."""
        return self.used + size <= (self.unverified_limit if unverified else self.events_limit)
