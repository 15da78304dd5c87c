"""Keeps secrets and tokens out of logs: a structlog processor.

Put it last before the renderer, behind the processor that formats exceptions. It removes every
known secret in the spellings in which one leaks (as it is, hex, base64, escaped) and every text
with a token's shape; everything else stays as it was.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, Final

from approvaltrail.schemas.token_shape import without_tokens

SECRET_REMOVED: Final = "[secret removed]"
_DEPTH: Final = 8
"""Values nested deeper are replaced by their type's name: a bound on work, never a leak."""
_PLAIN: Final = (bool, int, float, type(None))


def _spellings(secret: bytes) -> Iterable[str]:
    yield secret.hex()
    yield secret.hex().upper()
    yield base64.b64encode(secret).decode().rstrip("=")
    yield base64.urlsafe_b64encode(secret).decode().rstrip("=")
    yield repr(secret)[2:-1]
    text = secret.decode("utf-8", "replace")
    if "\ufffd" not in text:
        yield text
        yield repr(text)[1:-1]


class Scrubber:
    """Removes secrets and token-like text from log entries, and from any text."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        found = {spelling for secret in secrets for spelling in _spellings(secret) if spelling}
        self._spellings = tuple(sorted(found, key=len, reverse=True))

    def text(self, text: str) -> str:
        """Return the text without secrets and tokens."""
        for spelling in self._spellings:
            if spelling in text:
                text = text.replace(spelling, SECRET_REMOVED)
        return without_tokens(text)

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return the value without secrets and tokens; harmless values come back as they are."""
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, str):
            return self.text(value)
        if depth >= _DEPTH:
            return f"[{type(value).__name__}]"
        if isinstance(value, Mapping):
            return {
                self.value(key, depth + 1): self.value(item, depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(item, depth + 1) for item in value]
        shown = repr(value)
        scrubbed = self.text(shown)
        return value if scrubbed == shown else scrubbed

    def __call__(
        self,
        logger: Any,  # noqa: ARG002 - structlog's signature
        method_name: str,  # noqa: ARG002
        event_dict: MutableMapping[str, Any],
    ) -> MutableMapping[str, Any]:
        """Scrub one log entry: keys and values."""
        return {self.text(str(key)): self.value(item) for key, item in event_dict.items()}


def scrub_secrets(secrets: Iterable[bytes]) -> Scrubber:
    """Return the processor for these secrets: `scrub_secrets(gate.keys.secrets)`."""
    return Scrubber(secrets)
