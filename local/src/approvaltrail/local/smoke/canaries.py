"""Known nonces, one a hop, whose being found proves that the search would find a token too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from approvaltrail.local.smoke.search import Needles, forms_of, found_in_files
from approvaltrail.schemas.token_shape import parts_of


@dataclass(slots=True)
class Hunt:
    """Searches every hop for the tokens issued, and each hop for its own canary."""

    tokens: Iterable[str]
    canaries: dict[str, str] = field(default_factory=dict)
    """Hop → the nonce that must be found there."""
    canaries_found: set[str] = field(default_factory=set)
    leaks: dict[str, set[str]] = field(default_factory=dict)
    """Token → the hops in which any part of it was found."""

    _parts: dict[str, str] = field(init=False, repr=False)
    _needles: Needles = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make ready to look for every part of every token, and for the canaries."""
        self._parts = {part: token for token in self.tokens for part in parts_of(token)}
        self._needles = Needles([*self._parts, *self.canaries.values()])

    def through(self, hop: str, pieces: Iterable[bytes]) -> None:
        """Search pieces of bytes that a hop holds, raw and unpacked."""
        for piece in pieces:
            for form in forms_of(piece):
                self._note(hop, self._needles.found_in(form))

    def files(self, hop: str, *roots: Path) -> None:
        """Search files below folders, raw and unpacked."""
        self._note(hop, found_in_files(self._needles, *roots))

    def _note(self, hop: str, found: set[str]) -> None:
        if self.canaries.get(hop) in found:
            self.canaries_found.add(hop)
        for text in found:
            if text in self._parts:
                self.leaks.setdefault(self._parts[text], set()).add(hop)
