"""Everything known of one nonce, and what is known about the pieces that lack."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from approvaltrail.schemas.bounds import NONCE
from approvaltrail.schemas.events import NonceTrust
from approvaltrail.store.answers import CompletenessState, MissingPiece, Trail
from approvaltrail.store.queries.assembly import completion_of, keys_of, reuse_of
from approvaltrail.store.queries.conditions import events_by_key
from approvaltrail.store.queries.linking import links_of_nonce

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from approvaltrail.store.answers import Completeness, Gap, Reuse, StoredEvent, TenantScope
    from approvaltrail.store.connection import Store
    from approvaltrail.store.queries.conditions import Key
    from approvaltrail.store.queries.links import Links

_NAMED_GAPS = 3


def trail(
    store: Store, nonce: str, scope: TenantScope, completeness: Callable[[], Completeness]
) -> Trail:
    """Return the trail; `completeness` is asked only when a piece lacks."""
    if not nonce or len(nonce) > NONCE:
        raise ValueError(f"a nonce is 1 to {NONCE} characters long")
    links = links_of_nonce(store, nonce, scope)
    if links is None:
        return _nothing(nonce)
    keys = [*keys_of(links), *(key for key, _ in links.reuses), *links.early, *links.claimed]
    asks: list[Callable[[], Any]] = [lambda: events_by_key(store, keys, scope, nonce)]
    if _may_lack(links):
        asks.append(completeness)
    found, *known = store.together(*asks)
    if not found:
        return _nothing(nonce)
    built = _trail(nonce, links, found)
    return replace(
        built,
        missing=_missing(store, built, links, lambda: known[0] if known else completeness()),
    )


def _may_lack(links: Links) -> bool:
    """Whether a piece seems to lack by the keys alone, so that completeness is worth asking."""
    verified = links.issued or links.accepted or links.reuses_total > 0 or bool(links.early)
    unspent = links.reuses_total > 0 and not links.accepted
    unended = links.acceptance is not None and not links.completions
    return verified and (not links.issued or unspent or unended)


def _nothing(nonce: str) -> Trail:
    """Return what is known of a nonce of which this viewer may see nothing."""
    return Trail(
        nonce=nonce,
        trust=NonceTrust.NONE,
        issuance=None,
        acceptance=None,
        completions=(),
        early_refusals=(),
        reuses=(),
        reuses_total=0,
        claimed=(),
        claimed_total=0,
        withheld=0,
    )


def _trail(nonce: str, links: Links, found: dict[Key, StoredEvent]) -> Trail:
    def read(keys: tuple[Key, ...]) -> tuple[StoredEvent, ...]:
        return tuple(found[key] for key in keys if key in found)

    verified = any(stored.event.nonce_trust is NonceTrust.VERIFIED for stored in found.values())
    return Trail(
        nonce=nonce,
        trust=NonceTrust.VERIFIED if verified else NonceTrust.CLAIMED,
        issuance=found.get(links.issuance) if links.issuance else None,
        acceptance=found.get(links.acceptance) if links.acceptance else None,
        completions=read(links.completions),
        early_refusals=read(links.early),
        reuses=tuple(
            reuse_of(found[key], number, links, found)
            for key, number in links.reuses
            if key in found
        ),
        reuses_total=links.reuses_total,
        claimed=read(links.claimed),
        claimed_total=links.claimed_total,
        withheld=links.withheld,
    )


def _missing(
    store: Store, built: Trail, links: Links, completeness: Callable[[], Completeness]
) -> tuple[MissingPiece, ...]:
    if built.trust is not NonceTrust.VERIFIED:
        return ()
    lacks = []
    if not links.issued:
        lacks.append("issuance")
    if not links.accepted and built.reuses:
        lacks.append("acceptance")
    if built.acceptance and completion_of(built.acceptance, built.completions) is None:
        lacks.append("completion")
    if not lacks:
        return ()
    why = _why(store, built, completeness())
    return tuple(
        MissingPiece(piece=piece, explanation=_explain(piece, built, why)) for piece in lacks
    )


def _explain(piece: str, built: Trail, why: str) -> str:
    if piece == "acceptance":
        claim = next((claim for claim in map(_claim, built.reuses) if claim), None)
        said = f"the ledger says that it was spent by {claim}; " if claim else ""
        return f"acceptance not stored: {said}{why}"
    if piece == "completion":
        return f"outcome unknown: no completion is stored; {why}"
    return f"issuance not stored: {why}"


def _claim(reuse: Reuse) -> str | None:
    event = reuse.presentation.event
    if event.spent_claim_id is None:
        return None
    at = f" at {event.spent_at.isoformat()}" if event.spent_at else ""
    return f"{event.spent_claim_id}{at}"


def _why(store: Store, built: Trail, completeness: Completeness) -> str:
    """Say what is known about the reason why something lacks; one reason serves all pieces."""
    issued_at = _issued_at(built)
    oldest = store.query("SELECT min(occurred_at) FROM events").scalar()
    if issued_at is not None and issued_at < oldest:
        return f"before retention, the oldest stored event is of {oldest.isoformat()}"
    gaps = [
        f"producer {producer.producer_id} lacks {_range(producer.gaps[0])}"
        for producer in completeness.producers
        if producer.gaps
    ]
    if gaps:
        more = f" and {len(gaps) - _NAMED_GAPS} more" if len(gaps) > _NAMED_GAPS else ""
        return "; ".join(gaps[:_NAMED_GAPS]) + more
    match completeness.state:
        case CompletenessState.INCOMPLETE:
            return "events lack or cannot be proven"
        case CompletenessState.NOT_YET:
            return "unknown, events may still be on their way"
        case _:
            return "unknown, nothing lacks by what the producers report"


def _range(gap: Gap) -> str:
    return str(gap.first) if gap.first == gap.last else f"{gap.first}–{gap.last}"


def _issued_at(built: Trail) -> datetime | None:
    presented = [*built.early_refusals, *(reuse.presentation for reuse in built.reuses)]
    stored = [one for one in (built.acceptance, *presented) if one is not None]
    return next((one.event.issued_at for one in stored if one.event.issued_at), None)
