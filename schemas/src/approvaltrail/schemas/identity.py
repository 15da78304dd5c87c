"""Event identities: UUIDv7, so that they sort by time and need no coordination."""

from __future__ import annotations

import secrets
import time
import uuid
from typing import Final

UUID_PATTERN: Final = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
"""The one spelling of a UUID in events: lower case with hyphens."""


def uuid7(milliseconds: int, random_bits: int) -> str:
    """Build a UUIDv7 (RFC 9562, section 5.7) from Unix milliseconds and 74 random bits."""
    value = (milliseconds & (1 << 48) - 1) << 80
    value |= 0x7 << 76 | (random_bits >> 62 & 0xFFF) << 64
    value |= 0b10 << 62 | random_bits & (1 << 62) - 1
    return str(uuid.UUID(int=value))


def new_event_id() -> str:
    """Mint a UUIDv7 from the system clock and the system's random source."""
    return uuid7(time.time_ns() // 1_000_000, secrets.randbits(74))


def new_producer_id() -> str:
    """Mint the identity of a new journal."""
    return new_event_id()
