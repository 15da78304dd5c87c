"""Ctrl-C, SIGTERM and SIGHUP as one request to stop, made once."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(BaseException):
    """Somebody asked this process to stop."""


@contextlib.contextmanager
def stop_on_signals() -> Iterator[None]:
    """Raise `StopRequested` in the main thread at the first signal; further ones change nothing.

    So stopping in order cannot be cut short by an impatient second Ctrl-C.
    """
    asked = False

    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if not asked:
            asked = True
            raise StopRequested

    before: dict[int, Any] = {number: signal.signal(number, ask) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
