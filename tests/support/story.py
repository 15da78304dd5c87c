"""Builds what gates would have recorded: issuances, acceptances and reuses, on its own clock."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from approvaltrail.schemas.events import (
    AddressSource,
    EventType,
    NonceTrust,
    Outcome,
    PrincipalKind,
    Reason,
    RecordedEvent,
)
from approvaltrail.schemas.identity import uuid7

Call = dict[str, Any]


class Story:
    """A journal in memory. `now` is the moment at which the next event happens."""

    def __init__(self, now: datetime, seed: int = 1, instance: str = "mcp-1") -> None:
        self.now = now
        self.random = random.Random(seed)
        self.instance = instance
        self.producer_id = self._identity()
        self.events: list[RecordedEvent] = []

    def after(self, **gap: float) -> Story:
        """Let time pass."""
        self.now += timedelta(**gap)
        return self

    def nonce(self) -> str:
        """Return a nonce as gates make them."""
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
        return "".join(self.random.choices(alphabet, k=22))

    def call(self, who: str = "ana@corp.example", **changed: Any) -> Call:
        """Describe a caller and what it asks for."""
        seed = random.Random(who)
        call: Call = {
            "tenant": "acme",
            "tool": "tidb_delete_cluster",
            "target": "prod-7",
            "action": "delete",
            "principal": who,
            "principal_kind": PrincipalKind.USER,
            "credential_id": hashlib.sha256(who.encode()).hexdigest()[:32],
            "session_id": f"{seed.getrandbits(64):016x}",
            "client_address": f"10.0.{seed.randrange(8)}.{seed.randrange(2, 250)}",
            "address_source": AddressSource.TRUSTED_PROXY,
            "peer_address": "10.0.0.1",
            "client_name": "claude-desktop 1.4",
            "ledgered": True,
        }
        call["plan_hash"] = hashlib.sha256(f"{call['tool']}{call['target']}".encode()).hexdigest()
        return call | changed

    def issue(self, call: Call, *, nonce: str | None = None, summary: str | None = None) -> str:
        """Record an issuance and return its nonce."""
        nonce = nonce or self.nonce()
        self._add(
            EventType.ISSUED,
            call,
            nonce,
            plan_summary=summary or f"{call['action']} {call['target']} (3 nodes, 2 backups)",
            issued_at=self.now,
            expires_at=self.now + timedelta(minutes=10),
        )
        return nonce

    def accept(self, call: Call, nonce: str, *, outcome: Outcome | None = Outcome.SUCCEEDED) -> str:
        """Record an acceptance, and its completion unless the outcome is None."""
        accepted = self._add(EventType.ACCEPTED, call, nonce)
        if outcome is not None:
            self.after(seconds=self.random.uniform(0.5, 30))
            self._add(
                EventType.COMPLETED,
                call,
                nonce,
                outcome=outcome,
                acceptance_id=accepted.event_id,
            )
        return accepted.event_id

    def replay(self, call: Call, nonce: str, *, spent_by: str | None = None) -> RecordedEvent:
        """Record a strict replay."""
        first = next(
            (
                one
                for one in self.events
                if one.event_type is EventType.ACCEPTED and one.nonce == nonce
            ),
            None,
        )
        return self._add(
            EventType.REPLAYED,
            call,
            nonce,
            reason=Reason.ALREADY_USED,
            spent_at=first.occurred_at if first else self.now,
            spent_claim_id=spent_by or (first.event_id if first else self._identity()),
        )

    def refuse(
        self,
        call: Call,
        reason: Reason,
        nonce: str | None = None,
        *,
        trust: NonceTrust = NonceTrust.VERIFIED,
        **more: Any,
    ) -> RecordedEvent:
        """Record a refusal."""
        trust = NonceTrust.NONE if nonce is None else trust
        return self._add(EventType.REFUSED, call, nonce, reason=reason, nonce_trust=trust, **more)

    def _add(self, kind: EventType, call: Call, nonce: str | None, **more: Any) -> RecordedEvent:
        trust = NonceTrust.NONE if nonce is None else NonceTrust.VERIFIED
        event = RecordedEvent(
            event_id=self._identity(),
            event_type=kind,
            occurred_at=self.now,
            nonce=nonce,
            sequence=len(self.events) + 1,
            recorded_at=self.now + timedelta(milliseconds=2),
            producer_id=self.producer_id,
            service="tidb-mcp",
            instance=self.instance,
            **{"nonce_trust": trust, **call, **more},
        )
        self.events.append(event)
        return event

    def _identity(self) -> str:
        return uuid7(int(self.now.timestamp() * 1000), self.random.getrandbits(74))


def an_ordinary_day(now: datetime, seed: int = 7) -> Story:
    """Tell a day of ordinary traffic with a few incidents in its last minutes."""
    story = Story(now - timedelta(hours=23), seed)
    people = ["ana@corp.example", "bo@corp.example", "ci-deployer", "mika@corp.example"]
    tools = [
        ("tidb_delete_branch", "delete", "prod-7/feature-x"),
        ("tidb_create_cluster", "create", "staging-3"),
        ("tidb_create_backup", "create", "prod-7"),
        ("tidb_execute", "execute", "prod-7/orders"),
    ]
    chance = story.random
    while story.now < now - timedelta(minutes=40):
        who = chance.choice(people)
        tool, action, target = chance.choice(tools)
        tenant = chance.choice(["acme", "acme", "beta", "gamma"])
        call = story.call(who, tool=tool, action=action, target=target, tenant=tenant)
        nonce = story.issue(call)
        story.after(seconds=chance.uniform(5, 60))
        happened = chance.random()
        if happened < 0.85:
            story.accept(call, nonce)
        elif happened < 0.93:
            story.refuse(
                call, chance.choice([Reason.PLAN_CHANGED, Reason.TARGET_UNCONFIRMED]), nonce
            )
        else:
            story.refuse(call, Reason.MISSING_TOKEN)
        story.after(seconds=chance.uniform(60, 900))
    _incidents(story, now)
    story.events.sort(key=lambda one: (one.occurred_at, one.sequence))
    return story


def _incidents(story: Story, now: datetime) -> None:
    story.now = now - timedelta(minutes=22)
    ana = story.call()
    stolen = story.issue(ana)
    story.after(seconds=21).accept(ana, stolen)
    elsewhere = ana | {
        "client_address": "203.0.113.9",
        "client_name": "python-httpx/0.28",
        "session_id": "9c0ffee09c0ffee0",
    }
    story.after(minutes=8, seconds=29)
    for _ in range(3):
        story.replay(elsewhere, stolen)
        story.after(seconds=6.4)
    story.refuse(
        elsewhere | {"target": "prod-8"}, Reason.WRONG_TARGET, stolen, token_target="prod-7"
    )
    story.after(minutes=2)
    story.refuse(elsewhere | {"tenant": "beta"}, Reason.WRONG_TENANT, stolen, token_tenant="acme")

    story.now = now - timedelta(minutes=6)
    bo = story.call("bo@corp.example", tool="tidb_create_backup", action="create")
    lost = story.issue(bo)
    story.after(seconds=14).accept(bo, lost)
    story.after(seconds=40).replay(bo, lost)

    story.now = now - timedelta(minutes=3)
    unledgered = story.call(
        "ci-deployer", tool="tidb_execute", action="execute", target="prod-7/orders", ledgered=False
    )
    twice = story.issue(unledgered)
    story.after(seconds=4).accept(unledgered, twice, outcome=Outcome.FAILED)
    story.after(seconds=2).accept(unledgered, twice)
    story.now = now - timedelta(minutes=1)
    for _ in range(12):
        forged = story.call("mallory", principal=None, credential_id=None, session_id=None)
        story.refuse(
            forged | {"client_address": "198.51.100.23", "address_source": AddressSource.UNKNOWN},
            Reason.BAD_SIGNATURE,
            story.nonce(),
            trust=NonceTrust.CLAIMED,
        )
        story.after(seconds=0.9)


UTC_NOW = datetime(2026, 3, 9, 6, 0, tzinfo=UTC)
