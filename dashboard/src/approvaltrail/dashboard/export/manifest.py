"""What an export says of itself: what was asked, what it holds, and how complete the store was."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from datetime import datetime
from importlib.metadata import version
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from approvaltrail.dashboard.export.encodings import Encoding
from approvaltrail.dashboard.export.labelled import LabelledReuses
from approvaltrail.dashboard.export.rows import COLUMNS, instant
from approvaltrail.schemas.token_shape import without_tokens
from approvaltrail.store.answers import Completeness, CompletenessState, EventFilter, ReuseFilter

FORMAT: Final = "approvaltrail-export/1"
MANIFEST: Final = "manifest.json"
_PRODUCT: Final = "approvaltrail-dashboard"
_LISTED: Final = 50
"""Reasons for incompleteness that are written down; the state counts for all."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Exporter(_Part):
    """Who took the export."""

    principal: str
    subject: str | None = None
    """The identity provider's own name for the principal; None without sign-in."""
    role: str | None = None


class Query(_Part):
    """What was asked."""

    kind: Literal["trail", "events", "reuses"]
    nonce: str | None = None
    filter: dict[str, str] = {}
    tenant: str | None
    """The only tenant whose events the exporter may see; None for all."""


class Data(_Part):
    """The data file."""

    file: Annotated[str, Field(pattern=r"^[a-z0-9_.-]{1,64}$")]
    encoding: Encoding
    rows: Annotated[int, Field(ge=0)]
    bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    columns: tuple[str, ...] = COLUMNS
    order: str = "newest first"


class Statement(_Part):
    """How complete the store was when it was asked, for the producers that were heard from."""

    asked_at: AwareDatetime
    state: CompletenessState
    sentence: str
    complete_until: AwareDatetime | None
    producers_heard: int
    producers_expected: int | None
    dead_letters: int
    reasons: tuple[str, ...]


class Manifest(_Part):
    """The manifest."""

    format: Literal["approvaltrail-export/1"] = FORMAT
    product: str = _PRODUCT
    version: str
    made_at: AwareDatetime
    exporter: Exporter
    query: Query
    start: AwareDatetime
    """Events from this instant on (in)."""
    end: AwareDatetime
    """Events up to this instant (out)."""
    data: Data
    completeness: Statement
    withheld: int = 0
    """Presentations of the nonce from other tenants, which are not in it."""

    def encoded(self) -> bytes:
        """Return the manifest as it stands in an export; no token can be in it."""
        return without_tokens(self.model_dump_json(indent=2)).encode("utf-8") + b"\n"

    def sha256(self) -> str:
        """Return the hash of those bytes: kept elsewhere, it holds the whole export to its word."""
        return hashlib.sha256(self.encoded()).hexdigest()


def product_version() -> str:
    """Return the version that made an export."""
    return version(_PRODUCT)


def statement_of(found: Completeness) -> Statement:
    """Return what may be said of the store's completeness."""
    return Statement(
        asked_at=found.asked_at,
        state=found.state,
        sentence=_sentence(found),
        complete_until=found.complete_until,
        producers_heard=found.producers_heard,
        producers_expected=found.producers_expected,
        dead_letters=found.dead_letters,
        reasons=found.reasons[:_LISTED],
    )


def filter_of(wanted: EventFilter | ReuseFilter | LabelledReuses) -> dict[str, str]:
    """Return the fields of a filter that do not let everything through; a label with its limits."""
    if isinstance(wanted, LabelledReuses):
        return filter_of(wanted.wanted) | wanted.said()
    named = {one.name: getattr(wanted, one.name) for one in fields(wanted)}
    return {
        name: without_tokens(str(value))
        for name, value in named.items()
        if value is not None and value is not False
    }


def _sentence(found: Completeness) -> str:
    match found.state:
        case CompletenessState.COMPLETE:
            return f"The store was complete{_until(found.complete_until)}."
        case CompletenessState.NOT_YET:
            return (
                f"Nothing was known to lack{_until(found.complete_until)}, but events were still "
                "on their way or a producer was silent."
            )
        case CompletenessState.INCOMPLETE:
            return "Events lacked or could not be proven; the reasons are listed."
        case CompletenessState.NOTHING_RECORDED:
            return "No producer had reported anything."


def _until(moment: datetime | None) -> str:
    return f" up to {instant(moment)}" if moment else " in all that was emitted"
