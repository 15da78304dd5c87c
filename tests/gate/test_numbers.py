"""How a leaf reads."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvaltrail.gate.leaves import float_text, leaf_text
from approvaltrail.gate.render import json_text

STATED = [
    (1e-7, "1e-7"),
    (1e16, "10000000000000000"),
    (1e21, "1e+21"),
    (1.0, "1"),
    (-0.0, "0"),
    (5e-324, "5e-324"),
    (0.000001, "0.000001"),
    (123.456, "123.456"),
    (-1.5e-9, "-1.5e-9"),
    (float("nan"), "NaN"),
    (float("inf"), "Infinity"),
    (float("-inf"), "-Infinity"),
]
RFC_8785 = [
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
]


@pytest.mark.parametrize(("number", "text"), STATED)
def test_a_number_reads_as_ecmascript_shows_it(number: float, text: str) -> None:
    """G-08: numbers stand in ECMAScript's notation, at the top and nested."""
    assert leaf_text(number) == text
    assert json_text((number,)) == f"[{text}]"


@pytest.mark.parametrize(("bits", "text"), RFC_8785)
def test_the_numbers_of_rfc_8785_read_as_it_says(bits: str, text: str) -> None:
    """G-08: the sample numbers of RFC 8785, appendix B, read as printed there."""
    assert float_text(struct.unpack(">d", bytes.fromhex(bits))[0]) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_as_itself(number: float) -> None:
    """G-08: the text of a number reads back as that number, also after a JSON round trip."""
    text = float_text(number)
    assert float(text) == number
    assert leaf_text(json.loads(json.dumps(number))) == text
    if number.is_integer() and abs(number) < 2**53:
        assert leaf_text(int(number)) == text


@pytest.mark.parametrize(
    ("leaf", "text"), [(None, "null"), (True, "true"), (False, "false"), (1, "1"), ("x", "x")]
)
def test_other_leaves_read_as_javascript_shows_them(leaf: object, text: str) -> None:
    """None reads `null`, booleans read `true` and `false`, texts read as themselves."""
    assert leaf_text(leaf) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "integer", [10**10_000, -(10**10_000), 1 << 2_048], ids=["long", "negative", "shortest"]
)
def test_a_huge_integer_reads_as_its_size_and_digest(integer: int) -> None:
    """An integer too long to write is named, so that it cannot take out a preflight."""
    assert leaf_text(integer).startswith("[integer of ")
    assert leaf_text(integer) != leaf_text(integer + 1)
    assert leaf_text(integer) != leaf_text(-integer)
