"""Event identities: UUIDv7, so that they sort by time and need no coordination."""

from __future__ import annotations

import os
import time
from typing import Final

UUID_PATTERN: Final = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
"""The one spelling of a UUID in events: lower case with hyphens."""


class _RandomNumbers:
    """Numbers of 80 bits from the system's random source, drawn many at a time.

    A draw lets another thread take the interpreter. One draw an event costs those who record far
    more than its microsecond: the journal's writer breaks in after each, and writes small batches.
    """

    _BYTES: Final = 10
    _AT_ONCE: Final = 256

    def __init__(self) -> None:
        self._drawn: list[int] = []
        os.register_at_fork(after_in_child=self._drawn.clear)

    def next(self) -> int:
        """Return a number that no thread and no forked process is given again."""
        while True:
            try:
                return self._drawn.pop()
            except IndexError:
                data = os.urandom(self._AT_ONCE * self._BYTES)
                starts = range(0, len(data), self._BYTES)
                self._drawn += [
                    int.from_bytes(data[start : start + self._BYTES], "big") for start in starts
                ]


_RANDOM: Final = _RandomNumbers()
"""One for the process: what a fork copies is forgotten in the child."""


def uuid7(milliseconds: int, random_bits: int) -> str:
    """Build a UUIDv7 (RFC 9562, section 5.7) from Unix milliseconds and 74 random bits."""
    value = (milliseconds & (1 << 48) - 1) << 80
    value |= 0x7 << 76 | (random_bits >> 62 & 0xFFF) << 64
    value |= 0b10 << 62 | random_bits & (1 << 62) - 1
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def new_event_id() -> str:
    """Mint a UUIDv7 from the system clock and the system's random source."""
    return uuid7(time.time_ns() // 1_000_000, _RANDOM.next())


def new_producer_id() -> str:
    """Mint the identity of a new journal."""
    return new_event_id()
