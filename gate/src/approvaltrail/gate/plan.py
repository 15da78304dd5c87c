"""A plan: what an operation will do, as one frozen value that is shown, hashed and executed.

The hash covers what the operation is, never how it was displayed: tool, target, action, summary,
details, reversible. Bind what will be done, never how a resource happens to look right now: a
failed look-up is an error, and a placeholder for it would refuse a confirm that nobody changed.

The hash does not carry a leaf's type: `{v: 1}` and `{v: "1"}` hash alike, and show alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from approvaltrail.gate.errors import PlanError
from approvaltrail.gate.leaves import leaf_text
from approvaltrail.gate.values import Value, frozen_details, thawed
from approvaltrail.schemas import bounds

PLAN_BYTES: Final = 64 * 1024
"""How long a plan's canonical form may be: what a person is asked to approve must be readable, and
what is issued must be recordable."""
_DOMAIN: Final = b"approvaltrail plan v1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one call of a tool will do.

    Attributes:
        tool: name of the tool.
        target: the resolved thing that is acted on; None where there is none. Never as typed by the
            caller: the name that was resolved is shown, signed and executed.
        action: what is done to it, in a word or two.
        summary: one sentence for the person who approves.
        details: all else that decides what happens; deeply copied and frozen.
        reversible: whether it can be undone.

    Raises:
        PlanError: a value is missing, of a kind that cannot be shown, or beyond its bound.
    """

    tool: str
    target: str | None
    action: str
    summary: str
    details: Mapping[str, Any] = field(default_factory=dict)
    reversible: bool

    def __post_init__(self) -> None:
        self._fix("tool", bounds.TOOL)
        self._fix("action", bounds.ACTION)
        self._fix("summary", bounds.PLAN_SUMMARY)
        if self.target is not None:
            self._fix("target", bounds.TARGET, may_be_empty=True)
        if not isinstance(self.reversible, bool):
            raise PlanError("reversible must be True or False")
        object.__setattr__(self, "details", frozen_details(self.details))
        size = len(canonical_plan(self))
        if size > PLAN_BYTES:
            raise PlanError(
                f"the plan has {size} bytes in canonical form and may have {PLAN_BYTES}; "
                "name large contents by a digest"
            )

    def _fix(self, name: str, maximum: int, *, may_be_empty: bool = False) -> None:
        """Check a text and keep it as a plain one: a subclass might show itself as another."""
        text = getattr(self, name)
        _check_text(name, text, maximum, may_be_empty=may_be_empty)
        object.__setattr__(self, name, str.__str__(text))

    def values(self) -> dict[str, Any]:
        """Return the plan as plain values, for an API client or a structured result."""
        return {
            "tool": self.tool,
            "target": self.target,
            "action": self.action,
            "summary": self.summary,
            "details": thawed(self.details),
            "reversible": self.reversible,
        }


def plan_hash(plan: Plan) -> str:
    """Return the SHA-256 of the plan's canonical form, in lower-case hex."""
    return hashlib.sha256(canonical_plan(plan)).hexdigest()


def canonical_plan(plan: Plan) -> bytes:
    """Return the bytes under the plan's hash.

    Every part carries its kind and its length in bytes or members, so that no text can pass for
    structure: `s<bytes>:` a text, `l<members>:` a list, `m<members>:` a mapping with its keys
    sorted by UTF-16 code units, `n` an absent target.
    """
    texts = (plan.tool, plan.target, plan.action, plan.summary)
    parts = [_DOMAIN, *(b"n" if text is None else _framed(text) for text in texts)]
    _append(parts, plan.details)
    parts.append(_framed(leaf_text(plan.reversible)))
    return b"".join(parts)


def _append(parts: list[bytes], value: Value) -> None:
    if isinstance(value, Mapping):
        parts.append(b"m%d:" % len(value))
        for key, item in value.items():  # sorted when it was frozen
            parts.append(_framed(key))
            _append(parts, item)
    elif isinstance(value, tuple):
        parts.append(b"l%d:" % len(value))
        for item in value:
            _append(parts, item)
    else:
        parts.append(_framed(leaf_text(value)))


def _framed(text: str) -> bytes:
    encoded = text.encode("utf-8", "surrogatepass")
    return b"s%d:%b" % (len(encoded), encoded)


def _check_text(name: str, text: object, maximum: int, *, may_be_empty: bool = False) -> None:
    if not isinstance(text, str):
        raise PlanError(f"a plan's {name} must be a text, not a {type(text).__name__}")
    if not text and not may_be_empty:
        raise PlanError(f"a plan's {name} must not be empty")
    if len(text) > maximum:
        raise PlanError(f"a plan's {name} has {len(text)} characters and may have {maximum}")
