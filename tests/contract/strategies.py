"""Hypothesis strategies for events: any that the contract allows."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from approvaltrail.schemas import bounds
from approvaltrail.schemas.events import (
    AddressSource,
    ApprovalEvent,
    EventType,
    NonceTrust,
    Outcome,
    PrincipalKind,
    Reason,
    RecordedEvent,
)
from approvaltrail.schemas.identity import uuid7
from approvaltrail.schemas.token_shape import looks_like_token

EARLIEST = datetime(2020, 1, 1)  # noqa: DTZ001 - Hypothesis attaches the zone
LATEST = datetime(2035, 1, 1)  # noqa: DTZ001

instants = st.datetimes(EARLIEST, LATEST, timezones=st.just(UTC))
identities = st.builds(
    uuid7, st.integers(1_500_000_000_000, 2_000_000_000_000), st.integers(0, 2**74 - 1)
)
digests = st.binary(min_size=32, max_size=32).map(bytes.hex)
addresses = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(str)


def texts(maximum: int, minimum: int = 1) -> st.SearchStrategy[str]:
    """Any text of the contract: no lone surrogates, nothing that looks like a token."""
    alphabet = st.characters(codec="utf-8")
    size = min(maximum, 40)
    return st.text(alphabet, min_size=minimum, max_size=size).filter(
        lambda text: not looks_like_token(text)
    )


def optional(strategy: st.SearchStrategy) -> st.SearchStrategy:
    """Sometimes nothing."""
    return st.none() | strategy


@st.composite
def events(draw: st.DrawFn) -> ApprovalEvent:
    """Draw an event that holds together."""
    kind = draw(st.sampled_from(EventType))
    trust = draw(st.sampled_from(NonceTrust)) if kind is EventType.REFUSED else NonceTrust.VERIFIED
    completed = kind is EventType.COMPLETED
    judged = kind in {EventType.REFUSED, EventType.REPLAYED}
    pairs = draw(
        st.dictionaries(
            texts(bounds.ATTRIBUTE_NAME), texts(bounds.ATTRIBUTE_VALUE, minimum=0), max_size=5
        )
    )
    return ApprovalEvent(
        event_id=draw(identities),
        event_type=kind,
        occurred_at=draw(instants),
        reason=draw(st.sampled_from(Reason)) if judged else None,
        outcome=draw(st.sampled_from(Outcome)) if completed else None,
        acceptance_id=draw(identities) if completed else None,
        nonce=None if trust is NonceTrust.NONE else draw(texts(bounds.NONCE)),
        nonce_trust=trust,
        tenant=draw(optional(texts(bounds.TENANT))),
        tool=draw(texts(bounds.TOOL)),
        target=draw(optional(texts(bounds.TARGET))),
        action=draw(optional(texts(bounds.ACTION))),
        plan_hash=draw(optional(digests)),
        ledgered=draw(st.booleans()),
        plan_summary=draw(optional(texts(bounds.PLAN_SUMMARY))),
        issued_at=draw(optional(instants)),
        expires_at=draw(optional(instants)),
        key_id=draw(optional(texts(bounds.KEY_ID))),
        token_tenant=draw(optional(texts(bounds.TENANT))),
        token_tool=draw(optional(texts(bounds.TOOL))),
        token_target=draw(optional(texts(bounds.TARGET))),
        token_plan_hash=draw(optional(digests)),
        spent_at=draw(optional(instants)),
        spent_claim_id=draw(optional(identities)),
        principal=draw(optional(texts(bounds.PRINCIPAL))),
        principal_kind=draw(st.sampled_from(PrincipalKind)),
        credential_id=draw(optional(texts(bounds.CREDENTIAL_ID))),
        session_id=draw(optional(texts(bounds.SESSION_ID))),
        peer_address=draw(optional(addresses)),
        client_address=draw(optional(addresses)),
        address_source=draw(st.sampled_from(AddressSource)),
        client_name=draw(optional(texts(bounds.CLIENT_NAME))),
        request_id=draw(optional(texts(bounds.REQUEST_ID))),
        trace_id=draw(optional(texts(bounds.TRACE_ID))),
        attributes=tuple(sorted(pairs.items())),
    )


@st.composite
def recorded_events(draw: st.DrawFn) -> RecordedEvent:
    """Draw an event with its stamps."""
    return RecordedEvent(
        **draw(events()).model_dump(),
        sequence=draw(st.integers(1, 2**63 - 1)),
        recorded_at=draw(instants),
        producer_id=draw(identities),
        service=draw(texts(bounds.SERVICE)),
        instance=draw(texts(bounds.INSTANCE)),
    )
