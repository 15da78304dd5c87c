"""Exit codes of the consumers' processes; the command line uses the same numbers."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a process of this component says when it ends."""

    STOPPED = 0
    """Told to stop, and did."""
    SETTINGS = 3
    """A setting has no usable value: see the message, mend it, start again."""
    UNAVAILABLE = 4
    """Kafka or the store is not usable: run `approvaltrail migrate`, or see the message."""
