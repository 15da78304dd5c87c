"""The search of `smoke` finds what it must find, however it is packed."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvaltrail.local.smoke.canaries import Hunt
from approvaltrail.local.smoke.search import Needles, forms_of

PAYLOAD = "eyJub25jZSI6ImszSnhQOVF3In0_abcDEF-0123456789"
MAC = "Zm9yZ2VkZm9yZ2VkZm9yZ2VkZm9yZ2VkZm9yZ2VkZm9"
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
TOKEN = f"at1.{PAYLOAD}.{MAC}"


def column(body: bytes, method: int) -> bytes:
    """Pack bytes as a column file of the store has them."""
    packed = {
        0x02: lambda: body,
        0x82: lambda: bytes(cramjam.lz4.compress_block(body, store_size=False)),
        0x90: lambda: bytes(cramjam.zstd.compress(body)),
    }[method]()
    return b"c" * 16 + struct.pack("<BII", method, len(packed) + 9, len(body)) + packed


@given(st.binary(), st.binary())
def test_a_token_is_found_between_any_bytes(before: bytes, after: bytes) -> None:
    """Bytes around a token, letters too, do not hide it."""
    assert Needles([TOKEN]).found_in(before + TOKEN.encode() + after) == {TOKEN}


@pytest.mark.parametrize("part", [TOKEN, PAYLOAD, MAC])
def test_each_part_of_a_token_betrays_it(part: str) -> None:
    """The whole, the payload and the signature each count as the token's being found."""
    hunt = Hunt(tokens=[TOKEN])
    hunt.through("logs", [b'{"value": "' + part.encode() + b'"}'])
    assert hunt.leaks == {TOKEN: {"logs"}}


def test_a_nonce_does_not_betray_its_token() -> None:
    """What only resembles a token, or is public, is no hit."""
    hunt = Hunt(tokens=[TOKEN])
    hunt.through("logs", [PAYLOAD[:-1].encode(), MAC[1:].encode(), b"k3JxP9Qw"])
    assert hunt.leaks == {}


@pytest.mark.parametrize("method", [0x02, 0x82, 0x90])
def test_the_store_s_files_are_unpacked(method: int, tmp_path: Path) -> None:
    """A token in a packed column is found, behind other blocks too."""
    noise = "".join(random.Random(1).choices(ALPHABET, k=4000))
    body = f"{PAYLOAD}|{MAC}|{noise}|{TOKEN}|{noise}".encode()  # earlier parts are referred to
    data = column(b"first" * 100, 0x82) + column(b"numbers!", 0x02) + column(body, method)
    assert (TOKEN.encode() in data) is (method == 0x02)
    (tmp_path / "nonce.bin").write_bytes(data)
    hunt = Hunt(tokens=[TOKEN])
    hunt.files("store files", tmp_path)
    assert set(hunt.leaks) == {TOKEN}
    assert Needles([TOKEN]).found_in(b"".join(forms_of(data))) == {TOKEN}


def test_an_lz4_frame_is_unpacked() -> None:
    """A batch that lies packed as a frame is searched unpacked."""
    body = TOKEN.encode() * 3
    assert any(TOKEN.encode() in form for form in forms_of(bytes(cramjam.lz4.compress(body))))


@given(st.binary(max_size=400))
def test_no_bytes_break_the_unpacking(data: bytes) -> None:
    """Whatever lies in a file, the search goes on."""
    assert next(iter(forms_of(data))) == data


def test_a_canary_counts_only_in_its_own_hop() -> None:
    """The topic's canary in the journal does not prove that the topic was searched."""
    hunt = Hunt(tokens=[TOKEN], canaries={"topics": "canary-of-the-topics"})
    hunt.through("journal", [b"canary-of-the-topics"])
    assert hunt.canaries_found == set()
    hunt.through("topics", [b"canary-of-the-topics"])
    assert hunt.canaries_found == {"topics"}


def test_a_text_too_short_to_be_searched_is_refused() -> None:
    """A needle that the search cannot find is an error, not a silent miss."""
    with pytest.raises(ValueError, match="12 or more"):
        Needles(["short"])
