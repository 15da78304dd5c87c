"""What the engine's process says by its exit code."""

from __future__ import annotations

from typing import Final

FOLDER_IN_USE: Final = 3
PORT_TAKEN: Final = 4
