"""What is known of how one nonce's events belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    Key = tuple[datetime, UUID]

EDGE: Final = 100
"""Of a nonce's many reuses, the first and the last so many are given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The keys of one nonce's events; what the viewer may not see is None or left out."""

    nonce_hash: int
    issuance: Key | None
    issued: bool
    """Whether an issuance is stored at all."""
    acceptance: Key | None
    accepted: bool
    """Whether an acceptance is stored at all."""
    completions: tuple[Key, ...]
    """The first `EDGE`: a nonce that its tool does not spend may have many."""
    reuses: tuple[tuple[Key, int], ...]
    """Keys with their numbers: the chosen ones, or the first and last `EDGE`."""
    reuses_total: int
    early: tuple[Key, ...]
    """Turned down before the first acceptance, or without one; the first and last `EDGE`."""
    claimed: tuple[Key, ...]
    claimed_total: int
    withheld: int
    """Presentations that the viewer may not see."""
