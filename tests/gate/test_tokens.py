"""The token: its bytes, and that no other bytes pass for it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gate.common import OTHER_SECRET, SECRET

from approvaltrail.gate import base64url
from approvaltrail.gate.keys import Key, KeyRing, ring_of
from approvaltrail.gate.tokens import TOKEN_CHARACTERS, Claims, Unreadable, mint, new_nonce, read
from approvaltrail.schemas import Reason, bounds

RING = ring_of(SECRET)
ISSUED = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
KEY_ID = "b2c1ddc61482"
MAC = "TiAk4nmPiPiveVUoae4XQIjf12wDfdJA7C8C2OSEloY"


def claims(**changes: Any) -> Claims:
    """Make claims; `changes` replace fields."""
    values: dict[str, Any] = {
        "nonce": base64url.encode(bytes(range(16))),
        "tool": "tidb_delete_cluster",
        "target": "prod-7",
        "tenant": "acme",
        "plan_hash": hashlib.sha256(b"plan").hexdigest(),
        "issued_at": ISSUED,
        "expires_at": ISSUED + timedelta(minutes=10),
        "key_id": RING.signing.key_id,
    }
    return Claims(**(values | changes))


TOKEN = mint(claims(), RING)


def signed(payload: bytes, secret: str = SECRET, prefix: str = "at1") -> str:
    """Sign any payload as the format says, with nothing but the standard library."""
    body = f"{prefix}.{base64.urlsafe_b64encode(payload).decode().rstrip('=')}"
    mac = hmac.new(secret.encode(), body.encode(), hashlib.sha256).digest()
    return f"{body}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def reason_of(token: object, ring: KeyRing = RING) -> Reason | None:
    """Return why a text is no token, or None where it is one."""
    found = read(token, ring)
    return found.reason if isinstance(found, Unreadable) else None


def test_the_bytes_of_a_token_are_fixed() -> None:
    """G2: version, canonical JSON in base64url, and the MAC over both as they stand."""
    payload = (
        b'{"exp":1767269400123456,"iat":1767268800123456,"kid":"' + KEY_ID.encode() + b'",'
        b'"nonce":"AAECAwQFBgcICQoLDA0ODw",'
        b'"plan":"' + hashlib.sha256(b"plan").hexdigest().encode() + b'",'
        b'"target":"prod-7","tenant":"acme","tool":"tidb_delete_cluster"}'
    )
    assert signed(payload) == TOKEN
    assert TOKEN.endswith(MAC)
    assert read(TOKEN, RING) == claims()


def test_a_nonce_has_128_random_bits() -> None:
    """G2: the nonce is sixteen bytes of the random source, in 22 characters."""
    asked: list[int] = []
    nonce = new_nonce(lambda count: asked.append(count) or bytes(count))  # type: ignore[func-returns-value]
    assert asked == [16]
    assert nonce == "A" * 22


texts = st.text(max_size=20)


@given(texts, st.none() | texts, st.none() | texts)
def test_claims_come_back_as_they_were_signed(
    tool: str, target: str | None, tenant: str | None
) -> None:
    """G2, G-05: every text, absent and empty ones too, comes back as itself."""
    wanted = claims(tool=tool, target=target, tenant=tenant)
    assert read(mint(wanted, RING), RING) == wanted


fields = st.tuples(st.text(max_size=6), st.none() | st.text(max_size=6), st.none() | st.text())


@given(fields, fields)
def test_two_tuples_of_fields_never_share_signed_bytes(one: Any, other: Any) -> None:
    """G-04: no separator inside a field makes one tuple's signed bytes another's."""
    first, second = (
        mint(claims(tool=tool, target=target, tenant=tenant), RING)
        for tool, target, tenant in (one, other)
    )
    assert (first == second) is (one == other)


@pytest.mark.parametrize("mark", ["|", "\n", ".", ":", "\0", '"', "\\", ","])
def test_text_cannot_move_across_a_boundary(mark: str) -> None:
    """G-04: the MAC of `a|b`, `c` never verifies for `a`, `b|c`, whatever the mark."""
    first = mint(claims(tool=f"a{mark}b", target="c"), RING)
    second = mint(claims(tool="a", target=f"b{mark}c"), RING)
    head, _, _ = second.rpartition(".")
    forged = f"{head}.{first.rpartition('.')[2]}"
    assert first != second
    assert reason_of(forged) is Reason.BAD_SIGNATURE


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (None, Reason.MISSING_TOKEN),
        ("", Reason.MISSING_TOKEN),
        (" ", Reason.MALFORMED_TOKEN),
        ("random text", Reason.MALFORMED_TOKEN),
        (17, Reason.MALFORMED_TOKEN),
        ({"token": 1}, Reason.MALFORMED_TOKEN),
        (TOKEN + "\n", Reason.MALFORMED_TOKEN),
        (TOKEN + "=", Reason.MALFORMED_TOKEN),
        (" " + TOKEN, Reason.MALFORMED_TOKEN),
        (TOKEN.replace("at1.", "at2."), Reason.MALFORMED_TOKEN),
        (TOKEN.replace("at1.", "at１."), Reason.MALFORMED_TOKEN),
        (TOKEN + TOKEN, Reason.MALFORMED_TOKEN),
        (TOKEN.rpartition(".")[0], Reason.MALFORMED_TOKEN),
        ("at1.!!!!." + "A" * 43, Reason.MALFORMED_TOKEN),
        ("at1." + "A" * TOKEN_CHARACTERS + "." + "A" * 43, Reason.MALFORMED_TOKEN),
        ("\ud800" * 60, Reason.MALFORMED_TOKEN),
        (signed(b"no json", OTHER_SECRET), Reason.MALFORMED_TOKEN),
        (signed(b"[" * 5_000, OTHER_SECRET), Reason.MALFORMED_TOKEN),
        (signed(b"1" * 5_000, OTHER_SECRET), Reason.MALFORMED_TOKEN),
        (signed(b"[1]", OTHER_SECRET), Reason.MALFORMED_TOKEN),
        (signed(b"{}", OTHER_SECRET), Reason.BAD_SIGNATURE),
        (signed(b"\xff\xfe", OTHER_SECRET), Reason.MALFORMED_TOKEN),
    ],
    ids=lambda value: value.value if isinstance(value, Reason) else "token",
)
def test_what_is_no_token_has_a_cause_of_its_own(token: object, reason: Reason) -> None:
    """S-02, S-11: each broken form is answered with a cause, and never with an exception."""
    assert reason_of(token) is reason


@pytest.mark.parametrize(
    "broken",
    [
        b"no json",
        b"{}",
        b'{"exp":1}',
        json.dumps({"exp": "x"}).encode(),
    ],
)
def test_a_signed_payload_of_another_form_is_malformed(broken: bytes) -> None:
    """S-11: what our key signed but is no token of this version is refused, without detail."""
    assert reason_of(signed(broken)) is Reason.MALFORMED_TOKEN


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("exp", "soon"),
        ("exp", 1.5),
        ("exp", True),
        ("iat", -1),
        ("exp", 2**60),
        ("nonce", "short"),
        ("nonce", None),
        ("tool", None),
        ("plan", 7),
        ("target", 7),
        ("tenant", []),
        ("kid", "other"),
    ],
)
def test_a_signed_value_of_another_kind_is_malformed(name: str, value: object) -> None:
    """S-11: numbers, times and texts of the wrong kind are refused, even under our signature."""
    payload = json.loads(base64url.decode(TOKEN.split(".")[1]) or b"")
    assert reason_of(signed(compact(payload | {name: value}))) is Reason.MALFORMED_TOKEN
    assert reason_of(signed(compact(payload))) is None


def compact(values: dict[str, Any]) -> bytes:
    """Write JSON as a token's payload has it."""
    return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()


PAYLOAD = base64url.decode(TOKEN.split(".")[1]) or b""


@pytest.mark.parametrize(
    "payload",
    [
        PAYLOAD.replace(b",", b", "),
        PAYLOAD + b" ",
        PAYLOAD.replace(b"{", b'{"tool":"tidb_execute",'),
        PAYLOAD.replace(b"prod", b"\\u0070rod"),
        PAYLOAD.replace(b'"exp":', b'"exp":0,"exp":'),
        json.dumps(dict(reversed(json.loads(PAYLOAD).items())), separators=(",", ":")).encode(),
        PAYLOAD.decode().encode("utf-16"),
        PAYLOAD.decode().encode("utf-8-sig"),
    ],
    ids=["spaces", "end", "twice", "escape", "number twice", "order", "utf-16", "byte order mark"],
)
def test_a_payload_has_one_spelling_even_under_our_signature(payload: bytes) -> None:
    """G2: the same claims in another JSON text are no token: what is signed reads one way only."""
    assert payload != PAYLOAD
    assert reason_of(signed(payload)) is Reason.MALFORMED_TOKEN


def test_only_the_canonical_spelling_verifies() -> None:
    """G2: of the spellings that Python's decoder takes for the same bytes, one is a token."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    accepted = [c for c in alphabet if reason_of(TOKEN[:-1] + c) is None]
    assert accepted == [TOKEN[-1]]


@given(st.text(max_size=40))
def test_decoding_takes_nothing_but_what_encoding_gives(text: str) -> None:
    """G2: a text decodes only if its bytes encode to that very text."""
    decoded = base64url.decode(text)
    assert decoded is None or base64url.encode(decoded) == text


@settings(max_examples=300)
@given(st.integers(0, len(TOKEN) - 1), st.characters(codec="utf-8"))
def test_no_single_character_can_be_replaced(place: int, character: str) -> None:
    """G2: a token with one other character is none."""
    mutated = TOKEN[:place] + character + TOKEN[place + 1 :]
    assert (reason_of(mutated) is None) is (mutated == TOKEN)


@settings(max_examples=300)
@given(st.data())
def test_no_cut_joined_or_swapped_token_verifies(data: st.DataObject) -> None:
    """G2: truncations, repetitions and parts of two tokens are none."""
    other = mint(claims(target="prod-8"), RING)
    start = data.draw(st.integers(0, len(TOKEN)))
    end = data.draw(st.integers(0, len(TOKEN)))
    cut = data.draw(st.sampled_from([TOKEN[:start], TOKEN[start:], TOKEN[:start] + other[end:]]))
    assert (reason_of(cut) is None) is (cut in {TOKEN, other})


def test_a_claimed_nonce_is_named_as_claimed() -> None:
    """S-02: a nonce under another key's MAC is reported as claimed, if it has a nonce's form."""
    payload = json.loads(base64url.decode(TOKEN.split(".")[1]) or b"")
    assert read(signed(json.dumps(payload).encode(), OTHER_SECRET), RING) == Unreadable(
        reason=Reason.BAD_SIGNATURE, claimed_nonce=claims().nonce
    )
    hostile = json.dumps(payload | {"nonce": "<script>"}).encode()
    assert read(signed(hostile, OTHER_SECRET), RING) == Unreadable(reason=Reason.BAD_SIGNATURE)


def test_another_key_is_unknown_and_a_retired_one_verifies() -> None:
    """A rotated secret refuses no outstanding token; a dropped one is named as unknown."""
    rotated = ring_of(OTHER_SECRET, retired=[SECRET])
    assert read(TOKEN, rotated) == claims()
    assert reason_of(TOKEN, ring_of(OTHER_SECRET)) is Reason.UNKNOWN_KEY
    assert reason_of(mint(claims(key_id=rotated.signing.key_id), rotated), rotated) is None


def test_a_key_verifies_under_its_own_id_alone() -> None:
    """A token that names another id than its key's is malformed, though the MAC holds."""
    renamed = KeyRing(signing=Key(secret=SECRET.encode(), key_id="named"))
    assert reason_of(TOKEN, renamed) is Reason.MALFORMED_TOKEN


def test_no_text_beyond_the_bound_is_looked_at() -> None:
    """S-11: a text longer than any token is refused unread, even if our key signed it."""
    within = mint(claims(target="x" * 11_000), RING)
    beyond = mint(claims(target="x" * TOKEN_CHARACTERS), RING)
    assert reason_of(within) is None
    assert reason_of(beyond) is Reason.MALFORMED_TOKEN


def test_the_longest_token_fits_its_bound() -> None:
    """No token that can be issued is too long to be presented."""
    wide = "\U0001f600"
    longest = claims(
        tool=wide * bounds.TOOL, target=wide * bounds.TARGET, tenant=wide * bounds.TENANT
    )
    assert read(mint(longest, RING), RING) == longest
