"""What a forked child must not do with its parent's journal.

A child has no writer thread; its inherited SQLite handle could write into the parent's file; its
inherited lock descriptor keeps, and its unlock would free, the parent's lock (flock belongs to the
open file description, see flock(2)). So right after a fork the child closes the lock descriptors,
without unlocking, and forgets, without closing, everything else.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class ForkAware(Protocol):
    """Something that must be told, in a child, that it is now in a child."""

    def after_fork_in_child(self) -> None:
        """Let go of what belongs to the parent; must not block and must not raise."""
        ...


class ForkWatch:
    """Tells living objects about a fork. One for the process, because a fork concerns all of it."""

    def __init__(self) -> None:
        self._watched: weakref.WeakSet[ForkAware] = weakref.WeakSet()
        self._kept: list[object] = []
        self._registered = False

    def watch(self, something: ForkAware) -> None:
        """Tell this object about forks for as long as it lives."""
        if not self._registered:
            self._registered = True
            os.register_at_fork(after_in_child=self._in_child)
        self._watched.add(something)

    def keep(self, something: object) -> None:
        """Keep an inherited object for ever: collecting it would close the parent's handles."""
        self._kept.append(something)

    def _in_child(self) -> None:
        for something in list(self._watched):
            something.after_fork_in_child()


WATCH = ForkWatch()
"""The one watch of this process."""
