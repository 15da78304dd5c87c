"""What a recording process was told, kept outside of it: it survives the process's SIGKILL."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Notebook:
    """Writes a line at a time; a line is in the file when `write` has returned."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def attempt(self, event_id: str) -> None:
        """Note an event before it is recorded."""
        self.write("attempt", event_id)

    def acknowledged(
        self, event_id: str, producer_id: str, sequence: int, recorded_at: int
    ) -> None:
        """Note what `record` returned; `recorded_at` in µs since the epoch."""
        self.write("acknowledged", event_id, producer_id, sequence, recorded_at)

    def write(self, *words: object) -> None:
        """Append a line."""
        os.write(self._descriptor, (" ".join(map(str, words)) + "\n").encode())


@dataclass(slots=True)
class Noted:
    """A notebook, read."""

    attempted: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    times: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    """By producer: each acknowledged number and its time in µs."""


class Reader:
    """Follows a notebook; each `read` takes in what was added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self.noted = Noted()

    def read(self) -> Noted:
        """Return all that is noted by now."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._at)
                added = file.read()
            whole = added[: added.rfind(b"\n") + 1]
            self._at += len(whole)
            for line in whole.decode().splitlines():
                self._take(*line.split())
        return self.noted

    def _take(self, kind: str, event_id: str, *rest: str) -> None:
        if kind == "attempt":
            self.noted.attempted.add(event_id)
            return
        producer_id, sequence, recorded_at = rest
        self.noted.acknowledged.add(event_id)
        self.noted.times[producer_id][int(sequence)] = int(recorded_at)
