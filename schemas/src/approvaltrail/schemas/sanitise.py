"""Make any values recordable: recording a refusal must not fail, whatever an attacker sent.

Texts that are too long are cut with the hash of the whole, lone surrogates are replaced, what looks
like a token (or is part of the token in hand) is replaced, and a value that still breaks the
contract is left out and named in the attribute `unusable_fields`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import annotated_types
from pydantic import StringConstraints, ValidationError

from approvaltrail.schemas import bounds
from approvaltrail.schemas.events import ApprovalEvent, EventType, NonceTrust, Reason
from approvaltrail.schemas.token_shape import without_tokens

UNKNOWN_TOOL: Final = "(unknown)"
_HASH_HEX: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Sanitised:
    """An event made from untrusted values, and the names of the fields that were changed."""

    event: ApprovalEvent
    scrubbed: tuple[str, ...] = ()
    """Fields from which a token was removed."""
    cut: tuple[str, ...] = ()
    """Fields that were shortened."""
    unusable: tuple[str, ...] = ()
    """Fields that were left out."""


def clean_text(text: str, maximum: int, token_parts: tuple[str, ...] = ()) -> str:
    """Return the text without tokens and lone surrogates, cut with a hash at `maximum` chars."""
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = without_tokens(text, token_parts)
    if len(text) <= maximum:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_HEX]
    mark = f"…[{len(text)} chars, sha256 {digest}]"
    return text[: max(0, maximum - len(mark))] + mark[:maximum]


def event_from_untrusted(values: Mapping[str, Any], token_parts: tuple[str, ...] = ()) -> Sanitised:
    """Build an event from values of which any text may be hostile.

    Args:
        values: field names of `ApprovalEvent` to values. `event_id`, `event_type` and
            `occurred_at` are the server's own and must be right.
        token_parts: the token in hand and its parts (`token_shape.parts_of`).

    Raises:
        pydantic.ValidationError: the server's own values break the contract.
    """
    scrubbed: list[str] = []
    cut: list[str] = []
    cleaned: dict[str, Any] = {}
    shortest_part = min(map(len, token_parts), default=sys.maxsize)
    for name, value in values.items():
        if name == "attributes":
            cleaned[name] = _clean_attributes(value, token_parts)
        elif isinstance(value, str) and (maximum := _MAXIMUM.get(name)) is not None:
            size = len(value)
            if size <= maximum and size < shortest_part and "." not in value and value.isascii():
                cleaned[name] = value or None  # as most are: without a dot it is no token
                continue
            text = clean_text(value, maximum, token_parts)
            if text != value:
                too_long = size > maximum
                if not too_long or without_tokens(value, token_parts) != value:
                    scrubbed.append(name)
                if too_long:
                    cut.append(name)
            cleaned[name] = text or None
        else:
            cleaned[name] = value
    cleaned["tool"] = cleaned.get("tool") or UNKNOWN_TOOL
    if cleaned.get("nonce") is None:
        cleaned["nonce_trust"] = NonceTrust.NONE
    event, unusable = _build(cleaned)
    return Sanitised(
        event=event, scrubbed=tuple(scrubbed), cut=tuple(cut), unusable=tuple(unusable)
    )


def _build(cleaned: dict[str, Any]) -> tuple[ApprovalEvent, list[str]]:
    try:
        return ApprovalEvent.model_validate(cleaned), []
    except ValidationError as error:
        broken = sorted({str(part["loc"][0]) for part in error.errors() if part["loc"]})
        droppable = [name for name in broken if name not in _REQUIRED]
        if not droppable:
            raise
    usable = {name: value for name, value in cleaned.items() if name not in droppable}
    if "nonce" in droppable:
        usable["nonce_trust"] = NonceTrust.NONE
    if "reason" in droppable and usable["event_type"] in {EventType.REFUSED, EventType.REPLAYED}:
        usable["reason"] = Reason.OTHER
    if "attributes" not in droppable:
        pairs = dict(usable.get("attributes", ()))
        pairs["unusable_fields"] = ",".join(droppable)[: bounds.ATTRIBUTE_VALUE]
        usable["attributes"] = tuple(sorted(pairs.items())[: bounds.ATTRIBUTES])
    return ApprovalEvent.model_validate(usable), droppable


def _clean_attributes(
    value: Mapping[str, str] | tuple[tuple[str, str], ...], token_parts: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    pairs = {
        clean_text(str(name), bounds.ATTRIBUTE_NAME, token_parts) or "(empty)": clean_text(
            str(text), bounds.ATTRIBUTE_VALUE, token_parts
        )
        for name, text in dict(value).items()
    }
    return tuple(sorted(pairs.items())[: bounds.ATTRIBUTES])


def _maximum(metadata: list[Any]) -> int | None:
    for item in metadata:
        if isinstance(item, StringConstraints) and item.max_length is not None:
            return item.max_length
        if isinstance(item, annotated_types.MaxLen):
            return item.max_length
    return None


def _bounds_of_fields() -> dict[str, int]:
    found: dict[str, int] = {}
    for name, field in ApprovalEvent.model_fields.items():
        metadata = list(field.metadata)
        for argument in getattr(field.annotation, "__args__", ()):
            metadata += getattr(argument, "__metadata__", ())
        if name != "attributes" and (maximum := _maximum(metadata)) is not None:
            found[name] = maximum
    return found


_MAXIMUM: Final = _bounds_of_fields()
_REQUIRED: Final = frozenset(
    name for name, field in ApprovalEvent.model_fields.items() if field.is_required()
)
