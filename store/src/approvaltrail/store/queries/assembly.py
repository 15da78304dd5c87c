"""From keys to the reuses that pages show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from approvaltrail.store.answers import Reuse
from approvaltrail.store.queries.differences import differences

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from approvaltrail.store.answers import StoredEvent
    from approvaltrail.store.queries.conditions import Key
    from approvaltrail.store.queries.links import Links


def keys_of(links: Links) -> list[Key]:
    """Return the keys of a nonce's issuance, first acceptance and completions."""
    return [key for key in (links.issuance, links.acceptance, *links.completions) if key]


def completion_of(
    acceptance: StoredEvent | None, completions: Iterable[StoredEvent]
) -> StoredEvent | None:
    """Return how an acceptance's work ended: the completion that names it."""
    if acceptance is None:
        return None
    accepted = acceptance.event.event_id
    return next((one for one in completions if one.event.acceptance_id == accepted), None)


def reuse_of(
    presentation: StoredEvent, number: int, links: Links, found: Mapping[Key, StoredEvent]
) -> Reuse:
    """Put a reuse together; what was not read stays None."""
    nonce = presentation.event.nonce

    def read(key: Key | None) -> StoredEvent | None:
        stored = found.get(key) if key else None
        # the link went over a hash of the nonce; here the nonce itself is compared
        return stored if stored is not None and stored.event.nonce == nonce else None

    acceptance = read(links.acceptance)
    completions = [one for one in map(read, links.completions) if one is not None]
    return Reuse(
        presentation=presentation,
        number=number,
        total=links.reuses_total,
        issuance=read(links.issuance),
        acceptance=acceptance,
        completion=completion_of(acceptance, completions),
        since_acceptance=presentation.event.occurred_at - acceptance.event.occurred_at
        if acceptance
        else None,
        differences=differences(acceptance.event, presentation.event) if acceptance else (),
    )
