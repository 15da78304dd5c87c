"""What the arguments of a confirm are called."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Final

_PLAINLY_NO: Final = (None, False, "", "false")
_PLAINLY_YES: Final = (True, "true")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmArguments:
    """What the three arguments of a confirm are called, where a surface has names of its own."""

    confirm: str = "confirm"
    target: str = "confirm_target"
    token: str = "confirm_token"

    def take(self, named: dict[str, Any]) -> tuple[bool, str, Any]:
        """Take the three out of a call's arguments: confirmed or not, target, token.

        A confirm that says neither yes nor no is an attempt without a token: recorded, and refused.
        """
        confirm, target, token = (
            named.pop(name, None) for name in (self.confirm, self.target, self.token)
        )
        attempted = not any(confirm is no or confirm == no for no in _PLAINLY_NO)
        return attempted, target or "", token if confirm in _PLAINLY_YES else None

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
