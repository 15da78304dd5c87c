"""What a smoke run found: one object of figures, and the conditions that do not hold."""

from __future__ import annotations

from dataclasses import dataclass

from approvaltrail.local.smoke.checks import Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeReport:
    """The figures, in the order in which the command prints them, and the conditions."""

    figures: dict[str, int | float]
    conditions: tuple[Condition, ...]

    @property
    def failures(self) -> tuple[str, ...]:
        """What does not hold, and what was found instead."""
        return tuple(str(one) for one in self.conditions if not one.holds)
