"""Reuses of one label: what is asked, and how reuses are labelled as they are read.

A label weighs what else its caller reused within a window around it, so a walk over reuses, newest
first, holds those of one window and no more.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from pydantic import TypeAdapter

from approvaltrail.store.answers import Reuse, ReuseFilter
from approvaltrail.store.labels import Label, LabelKind, LabelThresholds, caller_of, label_of

_PREFIX = "label_"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledReuses:
    """The reuses of a filter that have one label under these limits."""

    wanted: ReuseFilter
    label: LabelKind
    limits: LabelThresholds = field(default_factory=LabelThresholds)

    def said(self) -> dict[str, str]:
        """Return label and limits, durations in seconds, as a manifest's filter holds them."""
        limits = TypeAdapter(LabelThresholds).dump_python(self.limits)
        plain = {name: _plain(value) for name, value in limits.items()}
        return {"label": self.label.value} | {_PREFIX + name: one for name, one in plain.items()}

    @classmethod
    def of(cls, said: Mapping[str, str]) -> Self:
        """Read a manifest's filter that holds a label.

        Raises:
            ValidationError: of pydantic; it says something else.
        """
        named = {name: one for name, one in said.items() if not name.startswith("label")}
        limits = {
            name.removeprefix(_PREFIX): float(one) if "window" in name else one
            for name, one in said.items()
            if name.startswith(_PREFIX)
        }
        return cls(
            wanted=TypeAdapter(ReuseFilter).validate_python(named),
            label=LabelKind(said["label"]),
            limits=TypeAdapter(LabelThresholds).validate_python(limits),
        )

    def around(self) -> ReuseFilter:
        """Return what has to be read to label what is wanted: all that its callers reused."""
        return ReuseFilter(tenant=self.wanted.tenant, principal=self.wanted.principal)

    def takes(self, reuse: Reuse, label: Label) -> bool:
        """Whether a reuse that was read is wanted."""
        tool, strict = self.wanted.tool, self.wanted.strict_replays_only
        named = tool is None or reuse.presentation.event.tool == tool
        return named and label.kind is self.label and (reuse.is_strict_replay or not strict)


def labelled(
    newest_first: Iterable[Reuse], limits: LabelThresholds
) -> Iterator[tuple[Reuse, Label]]:
    """Label reuses, newest first, none left out between the first and the last."""
    window = _Window()
    source = iter(newest_first)
    ahead = next(source, None)
    while window.waiting or ahead is not None:
        if not window.waiting and ahead is not None:
            window.enter(ahead)
            ahead = next(source, None)
        one = window.waiting.popleft()
        while ahead is not None and _at(ahead) >= _at(one) - limits.caller_window:
            window.enter(ahead)
            ahead = next(source, None)
        window.leave_after(_at(one) + limits.caller_window)
        yield one, label_of(one, limits, window.nonces(one))


class _Window:
    """The reuses around one, and how many nonces each caller reused among them."""

    def __init__(self) -> None:
        self.waiting: deque[Reuse] = deque()
        """Read and not labelled yet, newest first."""
        self._inside: deque[Reuse] = deque()
        self._nonces: defaultdict[Any, Counter[str | None]] = defaultdict(Counter)

    def enter(self, one: Reuse) -> None:
        self.waiting.append(one)
        self._inside.append(one)
        event = one.presentation.event
        self._nonces[caller_of(event)][event.nonce] += 1

    def leave_after(self, end: datetime) -> None:
        while self._inside and _at(self._inside[0]) > end:
            event = self._inside.popleft().presentation.event
            caller = caller_of(event)
            counted = self._nonces[caller]
            counted[event.nonce] -= 1
            if not counted[event.nonce]:
                del counted[event.nonce]
            if not counted:
                del self._nonces[caller]

    def nonces(self, one: Reuse) -> int:
        caller = caller_of(one.presentation.event)
        return 1 if caller is None else len(self._nonces[caller])


def _at(reuse: Reuse) -> datetime:
    return reuse.presentation.event.occurred_at


def _plain(value: Any) -> str:
    return f"{value.total_seconds():g}" if isinstance(value, timedelta) else str(value)
