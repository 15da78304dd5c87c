"""One colour, icon and word for each thing, from the Okabe–Ito palette.

It is safe for the colour-blind, and colour never stands alone. On dark ground the palette's own
lighter blue is used, for contrast.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from approvaltrail.schemas.events import EventType
from approvaltrail.store.labels import LabelKind

BLUE: Final = "#0072B2"
SKY_BLUE: Final = "#56B4E9"
GREEN: Final = "#009E73"
ORANGE: Final = "#E69F00"
VERMILION: Final = "#D55E00"
GREY: Final = "#8A8A8A"
PURPLE: Final = "#CC79A7"


@dataclass(frozen=True, slots=True)
class Sign:
    """How a kind of thing is marked: a word, an icon, and the tone that gives the colour."""

    word: str
    icon: str
    tone: str


class Tone(StrEnum):
    """The classes of style.css that give a colour."""

    ISSUED = "issued"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    REPLAYED = "replayed"
    COMPLETED = "completed"
    UNKNOWN = "unknown"


def sign_of(kind: EventType) -> Sign:
    """Return how an event is marked."""
    match kind:
        case EventType.ISSUED:
            return Sign("issued", "●", Tone.ISSUED)
        case EventType.ACCEPTED:
            return Sign("accepted", "✔\ufe0e", Tone.ACCEPTED)
        case EventType.REFUSED:
            return Sign("refused", "✖\ufe0e", Tone.REFUSED)
        case EventType.REPLAYED:
            return Sign("replayed", "▲", Tone.REPLAYED)
        case EventType.COMPLETED:
            return Sign("completed", "■", Tone.COMPLETED)
        case _:
            assert_never(kind)


def sign_of_label(kind: LabelKind) -> Sign:
    """Return how a label is marked. A retry is not green: nothing here says that all is well."""
    match kind:
        case LabelKind.NEEDS_REVIEW:
            return Sign("Needs review", "▲", Tone.REPLAYED)
        case LabelKind.NOT_ENOUGH_KNOWN:
            return Sign("Not enough known", "?", Tone.UNKNOWN)
        case LabelKind.CONSISTENT_WITH_RETRY:
            return Sign("Consistent with a retry", "↻", Tone.ISSUED)
        case _:
            assert_never(kind)
