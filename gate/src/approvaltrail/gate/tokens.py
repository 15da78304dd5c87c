"""The confirmation token: `at1.<payload>.<mac>`.

The payload is canonical JSON (keys sorted, no spaces, ASCII) in unpadded base64url; it is signed,
not encrypted. The MAC is HMAC-SHA256 over the received text `at1.<payload>`: the version is under
the signature, and nothing is re-serialised or joined to verify it. Absent and empty values stay
apart, since JSON tells `null` from `""`.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from approvaltrail.gate import base64url
from approvaltrail.gate.keys import KeyRing
from approvaltrail.schemas import Reason
from approvaltrail.schemas.encoding import instant_of, microseconds
from approvaltrail.schemas.token_shape import TOKEN_PREFIX

TOKEN_CHARACTERS: Final = 16_384
"""No longer text is looked at. The longest token that can be issued is shorter."""
NONCE_BYTES: Final = 16
_TOKEN: Final = re.compile(rf"{TOKEN_PREFIX}\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{{43}})")
_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{22,64}")
_KEY_ID_CHARACTERS: Final = 64
_LATEST: Final = 2**53
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)
_FIELDS: Final = frozenset({"exp", "iat", "kid", "nonce", "plan", "target", "tenant", "tool"})

RandomSource = Callable[[int], bytes]
"""Gives that many unpredictable bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a token says; believed only when it comes from `read`, which checks the signature."""

    nonce: str
    tool: str
    target: str | None
    tenant: str | None
    plan_hash: str
    issued_at: datetime
    expires_at: datetime
    key_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Why a text is no token of ours. `claimed_nonce` was chosen by whoever sent it."""

    reason: Reason
    claimed_nonce: str | None = None


def new_nonce(random: RandomSource) -> str:
    """Return a fresh nonce: 128 random bits in base64url."""
    return base64url.encode(random(NONCE_BYTES))


def mint(claims: Claims, ring: KeyRing) -> str:
    """Return the signed token; the claims' key id must be the signing key's."""
    payload = _canonical(
        {
            "exp": microseconds(claims.expires_at),
            "iat": microseconds(claims.issued_at),
            "kid": claims.key_id,
            "nonce": claims.nonce,
            "plan": claims.plan_hash,
            "target": claims.target,
            "tenant": claims.tenant,
            "tool": claims.tool,
        }
    )
    signed = f"{TOKEN_PREFIX}.{base64url.encode(payload)}"
    return f"{signed}.{base64url.encode(ring.signing.mac(signed.encode()))}"


def read(token: object, ring: KeyRing) -> Claims | Unreadable:
    """Check a token's form and signature and return its claims; expiry is not looked at.

    Nothing of the payload is interpreted before a signature held, except to name what was claimed.
    """
    if token is None or token == "":
        return Unreadable(reason=Reason.MISSING_TOKEN)
    if not isinstance(token, str) or len(token) > TOKEN_CHARACTERS:
        return Unreadable(reason=Reason.MALFORMED_TOKEN)
    found = _TOKEN.fullmatch(token)
    if found is None:
        return Unreadable(reason=Reason.MALFORMED_TOKEN)
    payload, mac = base64url.decode(found[1]), base64url.decode(found[2])
    if payload is None or mac is None:
        return Unreadable(reason=Reason.MALFORMED_TOKEN)
    signed = token[: found.end(1)].encode("ascii")
    for key in ring.keys:
        if hmac.compare_digest(key.mac(signed), mac):
            return _claims(payload, key.key_id)
    return _unsigned(payload, ring)


def _canonical(values: dict[str, Any]) -> bytes:
    return _ENCODER.encode(values).encode()


def _object(payload: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unsigned(payload: bytes, ring: KeyRing) -> Unreadable:
    claimed = _object(payload)
    if claimed is None:
        return Unreadable(reason=Reason.MALFORMED_TOKEN)
    nonce, key_id = claimed.get("nonce"), claimed.get("kid")
    known = any(key.key_id == key_id for key in ring.keys)
    named = isinstance(key_id, str) and 0 < len(key_id) <= _KEY_ID_CHARACTERS
    return Unreadable(
        reason=Reason.UNKNOWN_KEY if named and not known else Reason.BAD_SIGNATURE,
        claimed_nonce=nonce if isinstance(nonce, str) and _NONCE.fullmatch(nonce) else None,
    )


def _claims(payload: bytes, key_id: str) -> Claims | Unreadable:
    """Read a payload that one of our keys signed; another product with our key might have."""
    values = _object(payload)
    if values is None or values.keys() != _FIELDS or values["kid"] != key_id:
        return Unreadable(reason=Reason.MALFORMED_TOKEN)
    texts = (values["nonce"], values["tool"], values["plan"])
    nullable = (values["target"], values["tenant"])
    times = (values["iat"], values["exp"])
    if not (
        all(type(text) is str for text in texts)
        and all(text is None or type(text) is str for text in nullable)
        and all(type(time) is int and 0 <= time < _LATEST for time in times)
        and _NONCE.fullmatch(texts[0])
        and _canonical(values) == payload  # one spelling: no spaces, no key twice, no other charset
    ):
        return Unreadable(reason=Reason.MALFORMED_TOKEN)
    return Claims(
        nonce=texts[0],
        tool=texts[1],
        plan_hash=texts[2],
        target=nullable[0],
        tenant=nullable[1],
        issued_at=instant_of(times[0]),
        expires_at=instant_of(times[1]),
        key_id=key_id,
    )
