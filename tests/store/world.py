"""A small world of tokens and callers, made from a seed, and what is true of it, said in Python."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from approvaltrail.schemas.events import EventType, NonceTrust, Reason, RecordedEvent
from approvaltrail.schemas.identity import uuid7
from approvaltrail.store.answers import TimeRange

START = datetime(2026, 3, 30, 20, 0, tzinfo=UTC)
"""Shortly before a month ends, so that a token's life spans two of the table's partitions."""
TENANTS = ("acme", "beta", None)
PRESENTED = (EventType.ACCEPTED, EventType.REFUSED, EventType.REPLAYED)


@dataclass
class World:
    """Events in the order in which they were recorded."""

    random: random.Random
    producers: list[str] = field(default_factory=list)
    events: list[RecordedEvent] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def identity(self) -> str:
        """Mint an identity that depends on the seed alone."""
        return uuid7(self.random.randrange(1 << 41), self.random.getrandbits(74))

    def add(self, event_type: EventType, at: datetime, **values: object) -> RecordedEvent:
        """Record an event at one of the producers."""
        producer = self.random.choice(self.producers)
        self.counts[producer] += 1
        values = {
            "nonce_trust": NonceTrust.VERIFIED,
            "tool": self.random.choice(("tidb_delete_cluster", "tidb_execute")),
            "principal": self.random.choice(("ana@corp", "bo@corp", "eve@corp")),
            "event_id": self.identity(),
            **values,
        }
        event = RecordedEvent(
            event_type=event_type,
            occurred_at=at,
            recorded_at=at,
            producer_id=producer,
            sequence=self.counts[producer],
            service="tidb-mcp",
            instance="pod-1",
            **values,
        )
        self.events.append(event)
        return event


def world(seed: int, tokens: int = 60) -> World:
    """Make the world of a seed."""
    made = World(random.Random(seed))
    made.producers = [made.identity() for _ in range(3)]
    for number in range(tokens):
        _token(made, f"nonce-{seed}-{number}", START + timedelta(minutes=6 * number))
    return made


def _token(made: World, nonce: str, at: datetime) -> None:
    chance = made.random
    tenant = chance.choice(TENANTS)
    common = {"nonce": nonce, "issued_at": at, "expires_at": at + timedelta(minutes=10)}

    def later(seconds: float) -> datetime:
        return at + timedelta(seconds=chance.uniform(1, seconds))

    if chance.random() < 0.95:
        made.add(EventType.ISSUED, at, tenant=tenant, plan_summary="delete", **common)
    if chance.random() < 0.2:
        reason = chance.choice((Reason.WRONG_TOOL, Reason.PLAN_CHANGED))
        made.add(EventType.REFUSED, later(30), tenant=tenant, reason=reason, **common)
    spent = None
    if chance.random() < 0.85:
        accepted_at = at + timedelta(seconds=chance.uniform(30, 500))
        spent = made.add(EventType.ACCEPTED, accepted_at, tenant=tenant, **common)
        if chance.random() < 0.9:
            made.add(
                EventType.COMPLETED,
                accepted_at + timedelta(seconds=3),
                tenant=tenant,
                outcome="succeeded",
                acceptance_id=spent.event_id,
                **common,
            )
    for _ in range(chance.choice((0, 0, 0, 1, 2, 5))):
        _again(made, common, tenant, at, spent)
    if chance.random() < 0.3:
        made.add(
            EventType.REFUSED,
            later(900),
            tenant=tenant,
            reason=Reason.BAD_SIGNATURE,
            nonce=nonce if chance.random() < 0.5 else "made-up",
            nonce_trust=NonceTrust.CLAIMED,
        )


def _again(
    made: World,
    common: dict[str, object],
    tenant: str | None,
    at: datetime,
    spent: RecordedEvent | None,
) -> None:
    chance = made.random
    when = at + timedelta(seconds=chance.uniform(400, 30_000))
    whose = tenant if chance.random() < 0.8 else chance.choice(TENANTS)
    kind = chance.choice((EventType.REPLAYED, EventType.REFUSED, EventType.ACCEPTED))
    if kind is EventType.REPLAYED:
        made.add(
            kind,
            when,
            tenant=whose,
            reason=Reason.ALREADY_USED,
            spent_at=spent.occurred_at if spent else None,
            spent_claim_id=spent.event_id if spent else None,
            **common,
        )
    elif kind is EventType.REFUSED:
        made.add(kind, when, tenant=whose, reason=Reason.EXPIRED, **common)
    else:
        again_at = at + timedelta(seconds=chance.uniform(400, 600))
        made.add(kind, again_at, tenant=whose, **common)


def key(event: RecordedEvent) -> tuple[datetime, str]:
    """Return what a nonce's events are ordered by."""
    return event.occurred_at, event.event_id


def reuses_by_nonce(events: list[RecordedEvent]) -> dict[str, list[RecordedEvent]]:
    """Return every reuse of every nonce, in order: what the store has to find."""
    verified: defaultdict[str, list[RecordedEvent]] = defaultdict(list)
    for event in events:
        if event.nonce_trust is NonceTrust.VERIFIED:
            verified[event.nonce or ""].append(event)
    return {nonce: _reuses(sorted(own, key=key)) for nonce, own in verified.items()}


def _reuses(own: list[RecordedEvent]) -> list[RecordedEvent]:
    first = next((key(one) for one in own if one.event_type is EventType.ACCEPTED), None)
    return [
        one
        for one in own
        if one.event_type in PRESENTED
        and (
            one.event_type is EventType.REPLAYED
            or one.reason is Reason.ALREADY_USED
            or (first is not None and key(one) > first)
        )
    ]


def during(events: list[RecordedEvent], time_range: TimeRange) -> list[RecordedEvent]:
    """Return the events of a range."""
    return [one for one in events if time_range.start <= one.occurred_at < time_range.end]
