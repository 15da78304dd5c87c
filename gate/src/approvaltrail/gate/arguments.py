"""What the arguments of a confirm are called."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmArguments:
    """What the three arguments of a confirm are called, where a surface has names of its own."""

    confirm: str = "confirm"
    target: str = "confirm_target"
    token: str = "confirm_token"

    def take(self, named: dict[str, Any]) -> tuple[bool, str, Any]:
        """Take the three out of a call's arguments: confirmed or not, target, token."""
        confirm = bool(named.pop(self.confirm, False))
        target = named.pop(self.target, None)
        return confirm, target or "", named.pop(self.token, None)

    def parameters(self) -> list[inspect.Parameter]:
        """Return the three as a signature shows them."""
        kinds = ((self.confirm, False, bool), (self.target, None, str | None))
        return [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
            for name, default, annotation in (*kinds, (self.token, None, str | None))
        ]


DEFAULT_ARGUMENTS: Final = ConfirmArguments()
