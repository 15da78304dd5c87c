"""Compares what the ledger spent with what the record of events accepted, both ways.

A claim's id is the id of the event that should record it. So a claim without that event is a token
that was spent by a call nobody recorded: the process died in between, or the answer to the claim
was lost. An acceptance without its claim is worse: the ledger forgot, or was gone around.

The record is given as events, from a store, an export or a journal, in any order and with
repetitions; they should reach at least as far as the claims do, on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from approvaltrail.gate.ledger.protocol import ClaimsListing, SpentNonce
from approvaltrail.schemas import ApprovalEvent, EventType, NonceTrust, Reason

SETTLED_AFTER: Final = timedelta(minutes=2)
"""A claim or an acceptance younger than this may still be on its way to the other side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedNonce:
    """An acceptance of a ledgered tool, as the record has it."""

    nonce: str
    event_id: str
    accepted_at: datetime
    expires_at: datetime | None
    issued_at: datetime | None
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """One nonce, accepted by another event than the one that spent it."""

    claim: SpentNonce
    acceptance: AcceptedNonce


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedClaim:
    """A claim whose event is a refusal: the token was spent, and nothing was executed."""

    claim: SpentNonce
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """What the comparison of a range of time found."""

    start: datetime
    end: datetime
    matched: int
    """Claims and acceptances that name each other."""
    explained: tuple[ExplainedClaim, ...]
    spent_not_recorded: tuple[SpentNonce, ...]
    """Spent, and no event says by which decision: whether the work was done is unknown."""
    recorded_not_spent: tuple[AcceptedNonce, ...]
    """Accepted, and the ledger, which would still have it, has no claim."""
    contradictions: tuple[Contradiction, ...]
    """Accepted by an event that is not the claim's: a nonce may have been executed twice."""
    not_provable: tuple[AcceptedNonce, ...]
    """Accepted before the ledger was made, or so long ago that its claim may have been dropped."""
    unsettled: int
    """So young that either side may still be on its way; not judged."""

    @property
    def agrees(self) -> bool:
        """Whether ledger and record say the same of everything that could be judged."""
        return not (self.spent_not_recorded or self.recorded_not_spent or self.contradictions)


def reconcile(
    ledger: ClaimsListing,
    events: Iterable[ApprovalEvent],
    *,
    start: datetime,
    end: datetime,
    now: datetime,
    settled_after: timedelta = SETTLED_AFTER,
) -> Reconciliation:
    """Compare the claims and acceptances from `start` (in) to `end` (out).

    Args:
        ledger: whose claims.
        events: the record; of it, ledgered acceptances and refusals with a verified nonce count.
            Give a margin of some minutes on both sides of the range.
        start: the first instant that is compared.
        end: the first instant that is not.
        now: the present.
        settled_after: how old either side must be to be missed on the other.

    Raises:
        LedgerUnavailableError: the ledger cannot be read.
    """
    margin = settled_after
    record = _Record(events)
    claims = {claim.nonce: claim for claim in ledger.claims(start - margin, end + margin)}
    remembers = _Memory(since=ledger.created_at, pruned_until=ledger.pruned_until)
    settled_before = min(end, now - settled_after)
    findings = _Findings()
    for claim in claims.values():
        if start <= claim.spent_at < end:
            findings.judge_claim(claim, record, settled_before)
    for acceptance in record.acceptances.values():
        if start <= acceptance.accepted_at < end:
            claim_of = claims.get(acceptance.nonce)
            findings.judge_acceptance(acceptance, claim_of, remembers, settled_before)
    return findings.over(start, end)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """How far back the ledger can be asked."""

    since: datetime
    pruned_until: datetime

    def would_have(self, acceptance: AcceptedNonce) -> bool:
        """Say whether the ledger would still have the claim of this acceptance."""
        issued_at, expires_at = acceptance.issued_at, acceptance.expires_at
        if issued_at is None or expires_at is None:
            return False
        return issued_at >= self.since and expires_at > self.pruned_until


class _Record:
    """The events that decided on claims, by their ids."""

    def __init__(self, events: Iterable[ApprovalEvent]) -> None:
        self.acceptances: dict[str, AcceptedNonce] = {}
        self.refusals: dict[str, Reason] = {}
        for event in events:
            if event.nonce is None or event.nonce_trust is not NonceTrust.VERIFIED:
                continue
            if event.event_type is EventType.ACCEPTED and event.ledgered:
                self.acceptances[event.event_id] = _accepted(event.nonce, event)
            elif event.event_type is EventType.REFUSED and event.reason is not None:
                self.refusals[event.event_id] = event.reason


class _Findings:
    def __init__(self) -> None:
        self._matched = self._unsettled = 0
        self._explained: list[ExplainedClaim] = []
        self._spent_not_recorded: list[SpentNonce] = []
        self._recorded_not_spent: list[AcceptedNonce] = []
        self._contradictions: list[Contradiction] = []
        self._not_provable: list[AcceptedNonce] = []

    def judge_claim(self, claim: SpentNonce, record: _Record, settled_before: datetime) -> None:
        """Look for the event whose id the claim carries."""
        if claim.claim_id in record.acceptances:
            self._matched += 1
        elif claim.claim_id in record.refusals:
            reason = record.refusals[claim.claim_id]
            self._explained.append(ExplainedClaim(claim=claim, reason=reason))
        elif claim.spent_at < settled_before:
            self._spent_not_recorded.append(claim)
        else:
            self._unsettled += 1

    def judge_acceptance(
        self,
        acceptance: AcceptedNonce,
        claim: SpentNonce | None,
        memory: _Memory,
        settled_before: datetime,
    ) -> None:
        """Look for the claim of the accepted nonce."""
        if claim is not None and claim.claim_id != acceptance.event_id:
            self._contradictions.append(Contradiction(claim=claim, acceptance=acceptance))
        elif claim is not None:
            return  # counted with the claims
        elif not memory.would_have(acceptance):
            self._not_provable.append(acceptance)
        elif acceptance.accepted_at < settled_before:
            self._recorded_not_spent.append(acceptance)
        else:
            self._unsettled += 1

    def over(self, start: datetime, end: datetime) -> Reconciliation:
        """Return what was found, in the order of time."""
        return Reconciliation(
            start=start,
            end=end,
            matched=self._matched,
            unsettled=self._unsettled,
            explained=tuple(sorted(self._explained, key=lambda one: one.claim.spent_at)),
            spent_not_recorded=tuple(sorted(self._spent_not_recorded, key=_spent_at)),
            recorded_not_spent=tuple(sorted(self._recorded_not_spent, key=_accepted_at)),
            contradictions=tuple(
                sorted(self._contradictions, key=lambda one: one.acceptance.accepted_at)
            ),
            not_provable=tuple(sorted(self._not_provable, key=_accepted_at)),
        )


def _accepted(nonce: str, event: ApprovalEvent) -> AcceptedNonce:
    return AcceptedNonce(
        nonce=nonce,
        event_id=event.event_id,
        accepted_at=event.occurred_at,
        expires_at=event.expires_at,
        issued_at=event.issued_at,
        tool=event.tool,
    )


def _spent_at(claim: SpentNonce) -> datetime:
    return claim.spent_at


def _accepted_at(acceptance: AcceptedNonce) -> datetime:
    return acceptance.accepted_at
