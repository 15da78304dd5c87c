"""Which machine this is: a journal is continued only where it was made."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path
from typing import Final

_MACHINE_ID_FILES: Final = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_DIGITS: Final = 32


def machine_identity() -> str:
    """Return a digest of the machine's id, where it has one, and its host name.

    Containers often share a machine id, or have none; their host names differ.
    """
    parts = [socket.gethostname()]
    for path in _MACHINE_ID_FILES:
        try:
            parts.append(path.read_text("ascii").strip())
            break
        except (OSError, UnicodeDecodeError):
            continue
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS]
