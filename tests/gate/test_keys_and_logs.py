"""Secrets: long enough, rotated without loss, and in no log."""

from __future__ import annotations

import base64
import copy
import io
import logging
import pickle
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs
from tests.gate.common import DELETE, OTHER_SECRET, SECRET

from approvaltrail.gate import SecretError, scrub_secrets
from approvaltrail.gate.keys import Key, KeyRing, ring_of
from approvaltrail.gate.testing import GateUnderTest


@pytest.mark.parametrize("secret", ["", b"", "x" * 31, b"y" * 31])
def test_a_short_or_empty_secret_is_refused(secret: str | bytes) -> None:
    """G2, S5: a secret has 32 bytes or more; an empty one is an error, not a missing one."""
    with pytest.raises(SecretError):
        ring_of(secret)


def test_a_missing_secret_warns_loudly() -> None:
    """S5: without a secret one is generated, and a warning says what will not work."""
    with capture_logs() as logs:
        one, other = ring_of(None), ring_of(None)
    assert one.ephemeral
    assert one.signing.secret != other.signing.secret
    assert [entry["event"] for entry in logs] == ["confirm_secret_ephemeral"] * 2
    assert logs[0]["log_level"] == "warning"
    assert "another process" in logs[0]["meaning"]
    assert not ring_of(SECRET).ephemeral


def test_no_representation_shows_a_secret() -> None:
    """G2: keys and rings name ids alone."""
    ring = ring_of(SECRET, retired=[OTHER_SECRET])
    for text in (repr(ring), str(ring.signing), f"{ring.retired}"):
        assert SECRET not in text
        assert OTHER_SECRET not in text
        assert ring.retired[0].key_id in text or ring.signing.key_id in text


@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy])
def test_a_key_does_not_travel(copied: Any) -> None:
    """G2: no pickle of a ring holds its secret; the error does not either."""
    with pytest.raises(SecretError) as refused:
        copied(ring_of(SECRET))
    assert SECRET not in str(refused.value)


def test_key_ids_tell_keys_apart() -> None:
    """A ring holds each key once, and at most eight."""
    with pytest.raises(SecretError):
        ring_of(SECRET, retired=[SECRET])
    with pytest.raises(SecretError):
        ring_of(SECRET, retired=[f"{SECRET} {number}" for number in range(8)])
    with pytest.raises(SecretError):
        KeyRing(signing=Key(secret=SECRET.encode(), key_id="with space"))


def spellings(secret: bytes) -> list[str]:
    """List the ways in which a secret may come to stand in a log."""
    return [
        secret.hex(),
        base64.b64encode(secret).decode(),
        base64.urlsafe_b64encode(secret).decode(),
        repr(secret),
    ]


def test_a_secret_is_scrubbed_in_every_spelling() -> None:
    """S-10: the secret goes, whatever its spelling; the harmless fields beside it stay."""
    secret = bytes([0xFB, 0xFF, 0x00]) * 16  # its base64 needs `+` and `/`, its repr escapes
    scrub = scrub_secrets([secret, SECRET.encode()])
    for spelling in [*spellings(secret), *spellings(SECRET.encode()), SECRET]:
        entry = {
            "event": f"config {spelling}",
            "user": "ana",
            "count": 3,
            "nested": {"list": [spelling, "fine"], "ratio": 1.5},
            "error": ValueError(spelling),
            "raw": secret,
        }
        cleaned = scrub(None, "info", entry)
        assert spelling not in str(cleaned)
        assert repr(secret)[2:-1] not in str(cleaned)
        assert (cleaned["user"], cleaned["count"]) == ("ana", 3)
        assert cleaned["nested"]["list"][1] == "fine"
        assert cleaned["nested"]["ratio"] == 1.5


def test_what_holds_no_secret_stays_as_it_is() -> None:
    """S-10: redaction takes nothing else."""
    entry: dict[str, Any] = {"event": "issued", "nonce": "AAECAwQFBgcICQoLDA0ODw", "n": None}
    assert scrub_secrets([SECRET.encode()])(None, "info", entry) == entry


async def test_a_whole_confirm_logs_neither_token_nor_secret() -> None:
    """S-11: at level debug, with every parser failing, no log holds the input or the secret."""
    stream = io.StringIO()
    gate = GateUnderTest()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            gate.gate.scrubber(),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(stream),
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        cache_logger_on_first_use=False,
    )
    try:
        token = await gate.preflight(DELETE, cluster="prod-7")
        gate._issued |= dict.fromkeys((token[:-1], token[4:], f"{token}x"), gate._issued[token])
        for broken in (token[:-1], token[4:], f"{token}x", token):
            await gate.confirm(broken, client_name=broken)
        log = structlog.get_logger()
        log.debug("careless", token=token, secret=gate.gate.keys.signing.secret)
    finally:
        structlog.reset_defaults()
    text = stream.getvalue()
    assert "event_field_scrubbed" in text
    assert "careless" in text
    assert not any(part in text for part in token.split(".")[1:])
    assert not any(s in text for s in spellings(gate.gate.keys.signing.secret))
