"""The conditions of a smoke run, each with what was found where it does not hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from approvaltrail.local.smoke.canaries import Hunt
from approvaltrail.local.smoke.evidence import Number, Stored
from approvaltrail.local.smoke.tally import Tally
from approvaltrail.schemas.events import EventType
from approvaltrail.store.answers import Reuse

_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One thing that must hold."""

    name: str
    holds: bool
    found: str = ""

    def __str__(self) -> str:
        """Return the condition, and what was found instead."""
        return self.name if self.holds or not self.found else f"{self.name}: {self.found}"


def linked(reuse: Reuse) -> bool:
    """Say whether a reuse leads to its issuance and to its first acceptance."""
    nonce = reuse.presentation.event.nonce
    issuance, acceptance = reuse.issuance, reuse.acceptance
    return (
        issuance is not None
        and acceptance is not None
        and issuance.event.event_type is EventType.ISSUED
        and acceptance.event.event_type is EventType.ACCEPTED
        and issuance.event.nonce == nonce == acceptance.event.nonce
    )


def sets(recorded: frozenset[Number], stored: Stored, poison: frozenset[Number]) -> list[Condition]:
    """Check that what was recorded is what is stored and what is dead-lettered, and no more."""
    arrived = stored.numbers | stored.dead_numbers
    lost, foreign = recorded - arrived, arrived - recorded
    return [
        Condition(
            name="every recorded event is stored or dead-lettered",
            holds=not lost,
            found=f"{len(lost)} lack, such as {_some(lost)}",
        ),
        Condition(
            name="nothing is stored or dead-lettered that was not recorded",
            holds=not foreign,
            found=f"{len(foreign)} too many, such as {_some(foreign)}",
        ),
        Condition(
            name="exactly the poison message is dead-lettered, and once",
            holds=stored.dead_numbers == poison and stored.dead_letters == len(poison),
            found=f"{stored.dead_letters} dead letters, owners {_some(stored.dead_numbers)}",
        ),
        Condition(
            name="no event is both stored and dead-lettered",
            holds=not stored.numbers & stored.dead_numbers,
            found=_some(stored.numbers & stored.dead_numbers),
        ),
    ]


def counts(tally: Tally, stored: Stored) -> list[Condition]:
    """Check that three ways of counting agree: the gate's answers, identities, bitmaps."""
    answers = Counter({kind: count for kind, count in tally.events.items() if count})
    return [
        Condition(
            name="counts by uniqExact(event_id) equal the gate's answers",
            holds=stored.by_identity == answers,
            found=f"{_shown(stored.by_identity)} against {_shown(answers)}",
        ),
        Condition(
            name="counts by bitmap equal the gate's answers",
            holds=stored.by_bitmap == answers,
            found=f"{_shown(stored.by_bitmap)} against {_shown(answers)}",
        ),
        Condition(
            name="every answer could be recorded",
            holds=tally.unrecorded == 0,
            found=f"{tally.unrecorded} refusals were only counted",
        ),
    ]


def reuses(tally: Tally, stored: Stored) -> list[Condition]:
    """Check that every reuse is there, numbered, and linked to issuance and acceptance."""
    found = Counter(str(reuse.presentation.event.nonce) for reuse in stored.reuses)
    unlinked = [reuse for reuse in stored.reuses if not linked(reuse)]
    numbers: dict[str, set[int]] = {}
    for reuse in stored.reuses:
        numbers.setdefault(str(reuse.presentation.event.nonce), set()).add(reuse.number)
    misnumbered = {n for n, seen in numbers.items() if seen != set(range(1, found[n] + 1))}
    return [
        Condition(
            name="reuses by nonce equal the gate's answers",
            holds=found == tally.reuses and stored.reuses_total == tally.reuses.total(),
            found=f"{stored.reuses_total} against {tally.reuses.total()}; "
            f"differing: {_some(set(dict(found.items() ^ tally.reuses.items())))}",
        ),
        Condition(
            name="every reuse is linked to its issuance and its acceptance",
            holds=not unlinked,
            found=f"{len(unlinked)} are not, such as "
            f"{_some({str(reuse.presentation.event.nonce) for reuse in unlinked})}",
        ),
        Condition(
            name="the reuses of each nonce are numbered 1, 2, 3 …",
            holds=not misnumbered,
            found=_some(misnumbered),
        ),
    ]


def gaps(stored: Stored) -> tuple[int, Condition]:
    """Return how many numbers lack by the store's own reckoning, and the condition on it."""
    producers = stored.completeness.producers
    missing = sum(one.missing for one in producers)
    lost = sum(gap.events for one in producers for gap in one.lost)
    names = {one.producer_id for one in producers if one.missing or one.lost}
    return missing + lost, Condition(
        name="no gaps", holds=missing + lost == 0, found=f"{missing + lost} of {_some(names)}"
    )


def secrecy(hunt: Hunt) -> list[Condition]:
    """Check that every canary was found, so that the search works, and that no token was."""
    unseen = sorted(set(hunt.canaries) - hunt.canaries_found)
    hops = sorted({hop for found in hunt.leaks.values() for hop in found})
    return [
        Condition(
            name="the canary of every hop is found there",
            holds=not unseen,
            found=f"not found in: {', '.join(unseen)}",
        ),
        Condition(
            name="no token is found anywhere",
            holds=not hunt.leaks,
            found=f"{len(hunt.leaks)} tokens in: {', '.join(hops)}",
        ),
    ]


def _some(things: object) -> str:
    texts = sorted(map(str, things))  # type: ignore[call-overload]
    more = len(texts) - _EXAMPLES
    return ", ".join(texts[:_EXAMPLES]) + (f" and {more} more" if more > 0 else "")


def _shown(found: Counter[EventType]) -> str:
    return ", ".join(f"{kind.value} {count}" for kind, count in sorted(found.items()))
