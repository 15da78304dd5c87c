"""What an event may hold, and what no event can hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from approvaltrail.schemas import bounds
from approvaltrail.schemas.contract import event_contract
from approvaltrail.schemas.encoding import encode_event
from approvaltrail.schemas.events import (
    STAMPED_FIELDS,
    ApprovalEvent,
    EventType,
    Reason,
    RecordedEvent,
)
from approvaltrail.schemas.identity import new_event_id
from approvaltrail.schemas.sanitise import clean_text, event_from_untrusted
from approvaltrail.schemas.token_shape import parts_of

NOW = datetime(2026, 3, 8, 6, 59, 59, 999_000, tzinfo=UTC)
TOKEN = "at1." + "eyJ0b29sIjoidGlkYl9kZWxldGVfY2x1c3RlciJ9" + "." + "m" * 43


def refused(**changes: object) -> dict[str, object]:
    values: dict[str, object] = {
        "event_id": new_event_id(),
        "event_type": "refused",
        "occurred_at": NOW,
        "reason": "expired",
        "nonce": "k3JxPq9QwAbCdEfGhIjKlM",
        "nonce_trust": "verified",
        "tool": "tidb_delete_cluster",
    }
    return values | changes


def test_the_model_and_the_avro_contract_have_the_same_fields_in_order() -> None:
    """The pydantic model and the Avro schema are one contract."""
    avro = [field["name"] for field in event_contract().schema["fields"]]
    assert avro == [*STAMPED_FIELDS, *ApprovalEvent.model_fields]
    assert set(avro) == set(RecordedEvent.model_fields)


def test_the_enums_and_the_avro_symbols_agree() -> None:
    """Every enum of the model has exactly the symbols of the contract."""
    for field in event_contract().schema["fields"]:
        kind = field["type"][1] if isinstance(field["type"], list) else field["type"]
        if isinstance(kind, dict) and kind["type"] == "enum":
            annotation = ApprovalEvent.model_fields[field["name"]].annotation
            members = next(
                part
                for part in (annotation, *getattr(annotation, "__args__", ()))
                if part is not type(None) and hasattr(part, "__members__")
            )
            assert [member.value for member in members] == kind["symbols"]


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant": ""},
        {"tool": ""},
        {"target": "x" * (bounds.TARGET + 1)},
        {"occurred_at": datetime(2026, 3, 8)},  # noqa: DTZ001 - the point of the case
        {"nonce": None},
        {"nonce_trust": "none"},
        {"reason": None},
        {"event_type": "accepted"},
        {"event_type": "issued", "reason": None, "nonce_trust": "claimed"},
        {"event_type": "completed", "reason": None},
        {"outcome": "failed"},
        {"event_id": new_event_id().upper()},
        {"plan_hash": "A" * 64},
        {"peer_address": "10.0.0.256"},
        {"attributes": (("b", "1"), ("a", "2"))},
        {"attributes": (("a", "1"), ("a", "2"))},
        {"attributes": tuple((f"{n:02}", "") for n in range(bounds.ATTRIBUTES + 1))},
        {"target": "\ud800"},
        {"unheard_of": "field"},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_a_broken_event_is_refused(changes: dict[str, object]) -> None:
    """Empty texts, zone-less times, oversize values and contradictions are refused."""
    ApprovalEvent(**refused())
    with pytest.raises(ValidationError):
        ApprovalEvent(**refused(**changes))


@pytest.mark.parametrize("field", ["tenant", "tool", "target", "principal", "client_name", "nonce"])
@pytest.mark.parametrize("text", [TOKEN, f"see {TOKEN}", TOKEN.rpartition(".")[0], TOKEN[4:]])
def test_no_field_can_hold_a_token(field: str, text: str) -> None:
    """A token, whole or without prefix or MAC, in any text is refused, and the error hides it."""
    with pytest.raises(ValidationError) as caught:
        ApprovalEvent(**refused(**{field: text}))
    assert TOKEN[4:40] not in str(caught.value)


def test_a_time_of_any_zone_becomes_the_same_instant_in_utc() -> None:
    """An offset does not move an instant."""
    there = NOW.astimezone(timezone(timedelta(hours=-3, minutes=-30)))
    event = ApprovalEvent(**refused(occurred_at=there))
    assert event.occurred_at == NOW
    assert event.occurred_at.utcoffset() == timedelta(0)


def test_an_address_has_one_spelling() -> None:
    """Two spellings of an address are one value, so that comparing them is sound."""
    event = ApprovalEvent(**refused(client_address="2001:DB8:0:0::1", address_source="peer"))
    assert event.client_address == "2001:db8::1"


FREE_TEXT = (
    "tenant",
    "tool",
    "target",
    "action",
    "plan_hash",
    "principal",
    "peer_address",
    "client_name",
    "session_id",
    "trace_id",
    "token_target",
    "nonce",
)
hostile = (
    st.text(st.characters(), max_size=3_000) | st.just(TOKEN) | st.just("\ud83d") | st.just("")
)


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(FREE_TEXT, hostile),
    ),
    st.dictionaries(hostile, hostile, max_size=20),
)
@settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
def test_recording_a_refusal_is_total(texts: dict[str, str], pairs: dict[str, str]) -> None:
    """Whatever a caller sends, its refusal can be built and encoded, without any token."""
    values = refused(nonce=None, nonce_trust="claimed") | texts | {"attributes": pairs}
    made = event_from_untrusted(values, parts_of(TOKEN))
    data = encode_event(made.event)
    assert len(data) < bounds.EVENT_BYTES
    assert TOKEN[4:40].encode() not in data
    assert made.event.event_type is EventType.REFUSED


@given(
    st.text(st.sampled_from("ab.-_at1\u00e9\ud800 "), max_size=90)
    | st.sampled_from([TOKEN, TOKEN[4:], TOKEN[:30], "at1." + "x" * 15, "at1." + "x" * 16]),
    st.sampled_from([(), parts_of(TOKEN), ("a-short-part-of-1", "b" * 30)]),
)
@settings(max_examples=300, deadline=None)
def test_a_text_is_cleaned_as_it_is_alone(text: str, parts: tuple[str, ...]) -> None:
    """Each text of an event is what `clean_text` makes of it, whatever way it takes."""
    made = event_from_untrusted(refused(key_id=text), parts)
    assert made.event.key_id == (clean_text(text, bounds.KEY_ID, parts) or None)
    assert ("key_id" in (*made.scrubbed, *made.cut)) is (made.event.key_id != (text or None))


def test_what_was_changed_is_named() -> None:
    """Scrubbed, cut and unusable fields are each named; harmless ones stay as they were."""
    made = event_from_untrusted(
        refused(
            principal=TOKEN, target="y" * 3_000, plan_hash="no hash", tenant="acme", reason="what"
        )
    )
    assert (made.scrubbed, made.cut) == (("principal",), ("target",))
    assert made.unusable == ("plan_hash", "reason")
    assert made.event.tenant == "acme"
    assert made.event.reason is Reason.OTHER
    assert made.event.target is not None
    assert "3000 chars, sha256 " in made.event.target
    assert len(made.event.target) == bounds.TARGET
    assert dict(made.event.attributes) == {"unusable_fields": "plan_hash,reason"}


def test_a_part_of_the_token_in_hand_is_removed() -> None:
    """The payload or MAC of the presented token is removed even where it stands alone."""
    payload = TOKEN.split(".")[1]
    made = event_from_untrusted(refused(client_name=f"agent {payload}"), parts_of(TOKEN))
    assert made.event.client_name == "agent [token removed]"
