"""A leaf's text: what ECMAScript's `String()` gives (ECMA-262, Number::toString).

Preflight text and plan hash both use it, so that a number reads and hashes alike whatever wrote it:
`1.0` and `1` are `1`, `-0.0` is `0`, `1e-7` and `1e21` stand as JavaScript shows them.
"""

from __future__ import annotations

import hashlib
import math
from typing import Final

Leaf = str | int | float | bool | None

_LONGEST_INTEGER_BITS: Final = 2_048
"""Longer integers are named by size and digest: their digits help nobody, and Python refuses to
write integers of more than 640 digits where it is told so."""
_POSITIONAL_DIGITS: Final = 21
_SMALLEST_POSITIONAL: Final = -6


def leaf_text(value: Leaf) -> str:
    """Return the leaf as text: `null`, `true`, `1`, `1e-7`, or the text itself."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _integer_text(value)
    if isinstance(value, float):
        return float_text(value)
    return value


def _integer_text(value: int) -> str:
    bits = value.bit_length()
    if bits <= _LONGEST_INTEGER_BITS:
        return str(value)
    digest = hashlib.sha256(value.to_bytes(bits // 8 + 1, "big", signed=True)).hexdigest()
    return f"[integer of {bits} bits, sha256 {digest}]"


def float_text(value: float) -> str:
    """Return the shortest text that reads back as this number, in ECMAScript's notation."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    digits, point = _digits(abs(value))
    return sign + _placed(digits, point)


def _digits(value: float) -> tuple[str, int]:
    """Return the significant digits d and the n of the value 0.d × 10^n."""
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    point = len(whole) - leading + int(exponent or 0)
    return digits.rstrip("0"), point


def _placed(digits: str, point: int) -> str:
    count = len(digits)
    if count <= point <= _POSITIONAL_DIGITS:
        return digits + "0" * (point - count)
    if 0 < point <= _POSITIONAL_DIGITS:
        return f"{digits[:point]}.{digits[point:]}"
    if _SMALLEST_POSITIONAL < point <= 0:
        return "0." + "0" * -point + digits
    mantissa = digits if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"
