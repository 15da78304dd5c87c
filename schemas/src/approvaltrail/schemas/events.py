"""The event: one decision of the gate about a confirmation token.

`ApprovalEvent` is what a gate says; `RecordedEvent` adds what the journal's writer stamps.
The Avro contract (`avro/approval_event.v1.avsc`) has the same fields in the order of
`RecordedEvent.model_fields`; a test holds the two together.
"""

from __future__ import annotations

import functools
import ipaddress
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from approvaltrail.schemas import bounds
from approvaltrail.schemas.identity import UUID_PATTERN
from approvaltrail.schemas.token_shape import looks_like_token


class EventType(StrEnum):
    """What happened to a confirmation token."""

    ISSUED = "issued"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    REPLAYED = "replayed"
    COMPLETED = "completed"


class Reason(StrEnum):
    """Why a presentation was refused, or is a replay."""

    MISSING_TOKEN = "missing_token"
    MALFORMED_TOKEN = "malformed_token"
    BAD_SIGNATURE = "bad_signature"
    UNKNOWN_KEY = "unknown_key"
    EXPIRED = "expired"
    WRONG_TENANT = "wrong_tenant"
    WRONG_TOOL = "wrong_tool"
    WRONG_TARGET = "wrong_target"
    PLAN_CHANGED = "plan_changed"
    TARGET_UNCONFIRMED = "target_unconfirmed"
    PLAN_UNAVAILABLE = "plan_unavailable"
    ALREADY_USED = "already_used"
    PREDATES_LEDGER = "predates_ledger"
    LEDGER_UNAVAILABLE = "ledger_unavailable"
    LEDGER_FULL = "ledger_full"
    NOT_RECORDED = "not_recorded"
    OTHER = "other"


class Outcome(StrEnum):
    """How accepted work ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


class NonceTrust(StrEnum):
    """How far an event's nonce may be believed."""

    VERIFIED = "verified"
    """The token's signature held: this server family issued the nonce."""
    CLAIMED = "claimed"
    """The signature did not hold: the caller chose the text."""
    NONE = "none"
    """There is no nonce."""


class PrincipalKind(StrEnum):
    """What kind of caller a principal is."""

    USER = "user"
    SERVICE = "service"
    AGENT = "agent"
    UNKNOWN = "unknown"


class AddressSource(StrEnum):
    """Where a client address comes from, which says how far it may be believed."""

    PEER = "peer"
    TRUSTED_PROXY = "trusted_proxy"
    UNKNOWN = "unknown"


@functools.lru_cache(maxsize=4096)
def canonical_address(text: str) -> str:
    """Return an IP address in its canonical spelling, or raise ValueError."""
    return str(ipaddress.ip_address(text))


def _text(maximum: int) -> object:
    return StringConstraints(min_length=1, max_length=maximum)


def _in_utc(instant: datetime) -> datetime:
    return instant if instant.tzinfo is UTC else instant.astimezone(UTC)


Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""An aware instant, kept in UTC with microseconds; a zone-less time is refused."""
Identity = Annotated[str, StringConstraints(pattern=UUID_PATTERN)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Address = Annotated[str, _text(64), AfterValidator(canonical_address)]
Nonce = Annotated[str, _text(bounds.NONCE)]
Tenant = Annotated[str, _text(bounds.TENANT)]
Tool = Annotated[str, _text(bounds.TOOL)]
Target = Annotated[str, _text(bounds.TARGET)]
Action = Annotated[str, _text(bounds.ACTION)]
PlanSummary = Annotated[str, _text(bounds.PLAN_SUMMARY)]
KeyId = Annotated[str, _text(bounds.KEY_ID)]
Principal = Annotated[str, _text(bounds.PRINCIPAL)]
CredentialId = Annotated[str, _text(bounds.CREDENTIAL_ID)]
SessionId = Annotated[str, _text(bounds.SESSION_ID)]
ClientName = Annotated[str, _text(bounds.CLIENT_NAME)]
RequestId = Annotated[str, _text(bounds.REQUEST_ID)]
TraceId = Annotated[str, _text(bounds.TRACE_ID)]
AttributePair = tuple[
    Annotated[str, _text(bounds.ATTRIBUTE_NAME)],
    Annotated[str, StringConstraints(max_length=bounds.ATTRIBUTE_VALUE)],
]

_NEEDS_VERIFIED_NONCE: Final = frozenset(
    {EventType.ISSUED, EventType.ACCEPTED, EventType.REPLAYED, EventType.COMPLETED}
)
_NEEDS_REASON: Final = frozenset({EventType.REFUSED, EventType.REPLAYED})


class ApprovalEvent(BaseModel):
    """One decision of the gate, as the gate says it.

    Times are aware and kept in UTC with microseconds. A nullable text is never empty. No field
    can hold a token: a text with a token's shape is refused. Build from untrusted values with
    `approvaltrail.schemas.sanitise.event_from_untrusted`, which always succeeds.

    Raises:
        pydantic.ValidationError: a value breaks the contract; the message never repeats it.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=False
    )

    event_id: Identity
    event_type: EventType
    occurred_at: Instant
    reason: Reason | None = None
    outcome: Outcome | None = None
    acceptance_id: Identity | None = None
    nonce: Nonce | None = None
    nonce_trust: NonceTrust = NonceTrust.NONE
    tenant: Tenant | None = None
    tool: Tool
    target: Target | None = None
    action: Action | None = None
    plan_hash: Digest | None = None
    ledgered: bool = False
    plan_summary: PlanSummary | None = None
    issued_at: Instant | None = None
    expires_at: Instant | None = None
    key_id: KeyId | None = None
    token_tenant: Tenant | None = None
    token_tool: Tool | None = None
    token_target: Target | None = None
    token_plan_hash: Digest | None = None
    spent_at: Instant | None = None
    spent_claim_id: Identity | None = None
    principal: Principal | None = None
    principal_kind: PrincipalKind = PrincipalKind.UNKNOWN
    credential_id: CredentialId | None = None
    session_id: SessionId | None = None
    peer_address: Address | None = None
    client_address: Address | None = None
    address_source: AddressSource = AddressSource.UNKNOWN
    client_name: ClientName | None = None
    request_id: RequestId | None = None
    trace_id: TraceId | None = None
    attributes: Annotated[tuple[AttributePair, ...], Field(max_length=bounds.ATTRIBUTES)] = ()

    @model_validator(mode="after")
    def _hold_together(self) -> Self:
        kind = self.event_type
        if (self.nonce is None) is not (self.nonce_trust is NonceTrust.NONE):
            raise ValueError("nonce and nonce_trust must be given, or left out, together")
        if kind in _NEEDS_VERIFIED_NONCE and self.nonce_trust is not NonceTrust.VERIFIED:
            raise ValueError(f"an event of type {kind.value} needs a verified nonce")
        if (kind in _NEEDS_REASON) is (self.reason is None):
            raise ValueError("reason belongs to refused and replayed events, and to no others")
        if (kind is EventType.COMPLETED) is (self.outcome is None):
            raise ValueError("outcome belongs to completed events, and to no others")
        if (self.outcome is None) is not (self.acceptance_id is None):
            raise ValueError("acceptance_id belongs to completed events, and to no others")
        if self.attributes:
            names = [name for name, _ in self.attributes]
            if names != sorted(set(names)):
                raise ValueError("attributes must be sorted by name, each name once")
        if any(map(looks_like_token, self._dotted_texts())):
            raise ValueError("a value looks like a token; tokens are never recorded")
        return self

    def _dotted_texts(self) -> list[str]:
        """Every text that could hold a token: a token has a dot, and most texts have none."""
        texts = [text for text in self.__dict__.values() if type(text) is str and "." in text]
        for pair in self.attributes:
            texts += pair
        return texts


class RecordedEvent(ApprovalEvent):
    """An event with what the journal's writer stamped on it: the whole contract."""

    sequence: Annotated[int, Field(ge=1, le=2**63 - 1)]
    recorded_at: Instant
    producer_id: Identity
    service: Annotated[str, _text(bounds.SERVICE)]
    instance: Annotated[str, _text(bounds.INSTANCE)]


STAMPED_FIELDS: Final = ("sequence", "recorded_at", "producer_id", "service", "instance")
"""The fields that come first in the Avro contract and that no gate fills in."""
