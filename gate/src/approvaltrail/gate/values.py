"""Details of a plan as one frozen value: copied, bounded, of JSON's kinds only.

What is shown, hashed and executed is this value. It cannot change between the three, because
nothing outside holds a reference into it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from approvaltrail.gate.errors import PlanError
from approvaltrail.gate.leaves import Leaf, leaf_text

Value = Leaf | tuple["Value", ...] | Mapping[str, "Value"]

MAXIMUM_DEPTH: Final = 16
MAXIMUM_VALUES: Final = 2_000
CIRCULAR: Final = "[circular]"
"""Stands for a container that holds itself, in the text, in the hash and in what is executed."""
_NO_VALUES: Final[Mapping[str, Value]] = MappingProxyType({})


def frozen_details(details: Mapping[Any, Any] | None) -> Mapping[str, Value]:
    """Return a deep, read-only copy; no details and empty details are the same.

    Texts, numbers, booleans and None stay; mappings and lists are copied; enums give their value;
    dates, UUIDs and decimals give their text. A key that is no text becomes its text.

    Raises:
        PlanError: another kind of value, two keys with one text, or more than the bounds allow.
    """
    if not details:
        return _NO_VALUES
    frozen = _Freezer().freeze(details, "details", ())
    if not isinstance(frozen, Mapping):
        raise PlanError("details must be a mapping of names to values")
    return frozen


def thawed(value: Value) -> Any:
    """Return plain dicts and lists with the same values, for an API client or a JSON encoder."""
    if isinstance(value, Mapping):
        return {key: thawed(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [thawed(item) for item in value]
    return value


def utf16_order(key: str) -> bytes:
    """Sort key of the one documented order: by UTF-16 code units, as RFC 8785 and JavaScript do."""
    return key.encode("utf-16-be", "surrogatepass")


class _Freezer:
    def __init__(self) -> None:
        self._count = 0

    def freeze(self, value: Any, place: str, parents: tuple[int, ...]) -> Value:
        self._count += 1
        if self._count > MAXIMUM_VALUES:
            raise PlanError(f"details hold more than {MAXIMUM_VALUES} values; leave some out")
        if isinstance(value, Enum):
            value = value.value
        if isinstance(value, Mapping | list | tuple | set | frozenset):
            return self._container(value, place, parents)
        return _leaf(value, place)

    def _container(self, value: Any, place: str, parents: tuple[int, ...]) -> Value:
        if id(value) in parents:
            return CIRCULAR
        if len(parents) >= MAXIMUM_DEPTH:
            raise PlanError(f"details are nested deeper than {MAXIMUM_DEPTH} levels; flatten them")
        parents = (*parents, id(value))
        if isinstance(value, Mapping):
            return self._mapping(value, place, parents)
        if isinstance(value, set | frozenset):
            raise PlanError(f"{place} is a set, which has no order; give a sorted list")
        return tuple(self.freeze(item, f"{place}[…]", parents) for item in value)

    def _mapping(self, value: Mapping[Any, Any], place: str, parents: tuple[int, ...]) -> Value:
        frozen: dict[str, Value] = {}
        for key, item in value.items():
            name = leaf_text(_leaf(key, f"a key of {place}"))
            if name in frozen:
                raise PlanError(f"two keys of {place} have the same text; name each once")
            frozen[name] = self.freeze(item, f"a value of {place}", parents)
        ordered = sorted(frozen.items(), key=lambda pair: utf16_order(pair[0]))
        return MappingProxyType(dict(ordered))


def _leaf(value: Any, place: str) -> Leaf:
    """Reduce to exactly JSON's kinds, so that a subclass cannot show one thing and do another."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, UUID | Decimal):
        return str(value)
    raise PlanError(
        f"{place} is a {type(value).__name__}; a plan holds texts, numbers, booleans, None, "
        "lists and mappings of them, since anything else may show itself differently next time"
    )
