"""Base64url in its one canonical spelling (RFC 4648, section 5, without padding).

Python's decoder takes four spellings of some last characters, skips foreign characters and reads
`/` for `_`. A token must have one spelling only, so what does not encode back to itself is refused.
"""

from __future__ import annotations

import base64
import binascii


def encode(data: bytes) -> str:
    """Return the unpadded base64url text of the bytes."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode(text: str) -> bytes | None:
    """Return the bytes, or None where the text is not the canonical spelling of any bytes."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return data if encode(data) == text else None
