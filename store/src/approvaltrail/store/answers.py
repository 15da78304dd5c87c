"""What the named queries answer: frozen values that pages and the command line show.

All instants are aware and in UTC. Every answer that counts or lists events counts each event once,
whatever was sent or inserted twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from approvaltrail.schemas.events import EventType, NonceTrust, Outcome, Reason, RecordedEvent
from approvaltrail.schemas.messages import DeadLetterCause, GateState, Probe


@dataclass(frozen=True, slots=True)
class TenantScope:
    """Whose events a viewer may see: one tenant's, or (tenant None) everybody's.

    Every query takes one, so that nobody can forget it; it belongs in every cache key.
    """

    tenant: str | None

    @classmethod
    def everything(cls) -> TenantScope:
        """Return the scope of a viewer who may see every tenant."""
        return cls(None)

    @classmethod
    def only(cls, tenant: str) -> TenantScope:
        """Return the scope of a viewer who may see one tenant."""
        if not tenant:
            raise ValueError("a tenant scope needs a tenant; use TenantScope.everything() for all")
        return cls(tenant)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `start` (in) to `end` (out), both aware."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        """Refuse zone-less and reversed bounds."""
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("a time range needs zone-aware bounds, such as 2026-03-08T06:00:00Z")
        if self.end < self.start:
            raise ValueError("a time range must not end before it starts")

    @property
    def length(self) -> timedelta:
        """How long the range is."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """An event as the store holds it, and where it came from."""

    event: RecordedEvent
    partition: int
    offset: int
    stored_at: datetime
    schema_fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field in which a presentation differs from the accepting call."""

    field: str
    accepted: str | None
    presented: str | None
    trusted: bool
    """False for self-declared fields and addresses of unknown source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """A presentation of a verified nonce after its first acceptance, whatever its outcome."""

    presentation: StoredEvent
    number: int
    """1 for the first reuse of this nonce."""
    total: int
    """How many reuses of this nonce there are by now."""
    issuance: StoredEvent | None
    """None: not stored (see the trail's `missing`)."""
    acceptance: StoredEvent | None
    """The first acceptance; None: only the ledger knows of it."""
    completion: StoredEvent | None
    """How the first acceptance's work ended; None: outcome unknown."""
    since_acceptance: timedelta | None
    differences: tuple[Difference, ...] = ()

    @property
    def is_strict_replay(self) -> bool:
        """Whether the gate itself called it a replay."""
        return self.presentation.event.event_type is EventType.REPLAYED


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseFilter:
    """Narrows a list of reuses; None lets everything through."""

    tenant: str | None = None
    tool: str | None = None
    principal: str | None = None
    strict_replays_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReusePage:
    """Some reuses of a range, newest first, and how many there are in all."""

    reuses: tuple[Reuse, ...]
    total: int
    tokens: int
    """How many distinct nonces were reused in the range."""
    claimed: int
    """Presentations with an unverified nonce in the range: counted, never linked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingPiece:
    """Something that a trail ought to have and has not, and what is known about why."""

    piece: str
    """`issuance`, `acceptance` or `completion`."""
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """Everything known of one nonce, oldest first."""

    nonce: str
    trust: NonceTrust
    """VERIFIED when any event of it is verified; NONE when nothing is known of it."""
    issuance: StoredEvent | None
    acceptance: StoredEvent | None
    completions: tuple[StoredEvent, ...]
    early_refusals: tuple[StoredEvent, ...]
    """Verified presentations that were refused before the first acceptance (or without one)."""
    reuses: tuple[Reuse, ...]
    """All of them, or the first and last 100 when there are more."""
    reuses_total: int
    claimed: tuple[StoredEvent, ...]
    """At most 100 presentations with this text as an unverified nonce."""
    claimed_total: int
    withheld: int
    """Presentations from other tenants, which this viewer may not see."""
    missing: tuple[MissingPiece, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRow:
    """How many events of one type and reason fell into one bucket of time."""

    bucket: datetime
    event_type: EventType
    reason: Reason | None
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One entry of a list of the busiest."""

    name: str
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Counts of a range, exact under redelivery, beside those of the period before it."""

    counts: dict[EventType, int]
    previous: dict[EventType, int]
    """The same for the period of equal length before the range."""
    refusals: dict[Reason, int]
    series: tuple[CountRow, ...]
    bucket: timedelta
    busiest_tenants: tuple[Ranked, ...] = ()
    busiest_tools: tuple[Ranked, ...] = ()
    busiest_principals: tuple[Ranked, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Narrows a list of events; None lets everything through."""

    text: str | None = None
    """Found in target, principal, nonce, plan summary or client name, whatever the case."""
    tenant: str | None = None
    tool: str | None = None
    target: str | None = None
    principal: str | None = None
    credential_id: str | None = None
    address: str | None = None
    event_type: EventType | None = None
    reason: Reason | None = None
    outcome: Outcome | None = None
    nonce_trust: NonceTrust | None = None
    nonce: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """One page of events, newest first, and the exact total."""

    events: tuple[StoredEvent, ...]
    total: int


class ProducerCondition(StrEnum):
    """How a producer is doing, by its heartbeats and by what the store holds of it."""

    LIVE = "live"
    CLOSED = "closed"
    SILENT = "silent"
    """Live when last heard from, but not heard from for longer than the bound."""
    RETIRED = "retired"
    """Declared gone by an operator, with a reason."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Sequence numbers that were emitted and are neither stored nor dead-lettered."""

    first: int
    last: int

    @property
    def events(self) -> int:
        """How many numbers the gap spans."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerStatus:
    """One producer: what it emitted, what arrived, and what lacks."""

    producer_id: str
    service: str
    instance: str
    condition: ProducerCondition
    condition_reason: str | None
    """Why an operator retired it."""
    last_heartbeat_at: datetime | None
    emitted: int
    """Highest number heard of, by heartbeat or event."""
    stored: int
    """Distinct numbers stored."""
    dead_lettered: int
    """Distinct numbers dead-lettered and not stored."""
    in_flight: int
    """Emitted so lately that absence means nothing yet."""
    gaps: tuple[Gap, ...]
    """The first 20 gaps older than the in-flight bound."""
    missing: int
    """Numbers in all gaps together."""
    lost: tuple[Gap, ...]
    """Ranges the producer declared not provable."""
    complete_until: datetime | None
    """Every event recorded before this instant is stored or dead-lettered."""
    pending: int
    journal_fill: float
    """0 to 1."""
    gate_state: GateState
    gate_reason: str | None
    unrecorded_refusals: int
    ledger_probe: Probe
    ledger_probe_at: datetime | None
    cloned_numbers: int = 0
    """Numbers that stand for two different events: a cloned journal."""


class CompletenessState(StrEnum):
    """What may be said of the store as a whole."""

    COMPLETE = "complete"
    NOT_YET = "not_yet"
    """Nothing lacks, but something is still in flight, or a producer is silent."""
    INCOMPLETE = "incomplete"
    """Something lacks or cannot be proven."""
    NOTHING_RECORDED = "nothing_recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """Whether what is shown is all there is, for the producers that were heard from."""

    state: CompletenessState
    complete_until: datetime | None
    """Least `complete_until` of the producers that count."""
    reasons: tuple[str, ...]
    """Sentences, worst first, such as `producer 01a2… lacks 118–120 (3 events)`."""
    producers_heard: int
    producers_expected: int | None
    dead_letters: int
    asked_at: datetime
    producers: tuple[ProducerStatus, ...] = field(default=())
    """Empty for a viewer scoped to a tenant, who learns the state alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """One message that could not be stored, by its position."""

    topic: str
    partition: int
    offset: int
    cause: DeadLetterCause
    detail: str
    producer_id: str | None
    sequence: int | None
    dead_lettered_at: datetime
    redriven_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How the events of a filter spread over a range, by bucket, type and reason."""

    series: tuple[CountRow, ...]
    bucket: timedelta


class Fate(StrEnum):
    """What became of a nonce by the time of asking."""

    ACCEPTED = "accepted"
    """An acceptance is stored, of whatever time."""
    SPENT_UNRECORDED = "spent_unrecorded"
    """No acceptance is stored, yet a later presentation found the nonce spent."""
    EXPIRED = "expired"
    """Never spent, as far as is stored, and past its expiry."""
    OUTSTANDING = "outstanding"
    """Not spent and still valid."""
    EXPIRY_UNKNOWN = "expiry_unknown"
    """Not spent, and its issuance does not say until when it is valid."""
    ACCEPTED_UNISSUED = "accepted_unissued"
    """Accepted in the range, and no issuance is stored: beside the others, not among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerBalance:
    """Distinct nonces issued in a range, and the one fate of each by the time of asking."""

    fates: dict[Fate, int]
    """Every fate but `ACCEPTED_UNISSUED`; together they are the nonces issued."""
    accepted_unissued: int
    """Nonces accepted in the range of which no issuance is stored."""

    @property
    def issued(self) -> int:
        """How many distinct nonces were issued in the range."""
        return sum(self.fates.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerClaims:
    """Acceptances of a range, by whether they spent their nonce in the ledger."""

    claims: int
    """That spent it."""
    unledgered_acceptances: int
    """By tools that spend no nonce."""
    last_claim_at: datetime | None
    """The latest acceptance that spent its nonce, of whatever time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerOutage:
    """A time in which a server refused for want of its ledger; the refusals bound it."""

    service: str
    instance: str
    reason: Reason
    first: datetime
    last: datetime
    refusals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """What the sink stored lately."""

    last_stored_at: datetime | None
    window: timedelta
    """How far back `stored` and the delays look."""
    stored: int
    """Distinct events that happened and were stored within the window."""
    median_delay: timedelta | None = None
    """From the producer's journal to the store."""
    p99_delay: timedelta | None = None
