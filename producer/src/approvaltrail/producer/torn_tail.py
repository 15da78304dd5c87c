"""Recognises what a crash left at the end of the write-ahead log: a transaction cut short.

SQLite ignores it, rightly: no commit stands in it, so nobody was told that its events were
recorded. We say so, because a person who reads of a crash will ask. The log's layout is described
in https://sqlite.org/fileformat2.html, section 4.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_HEADER: Final = struct.Struct(">8I")
_FRAME_HEADER: Final = struct.Struct(">6I")


def torn_frames(log: Path, committed_frames: int) -> int:
    """Return how many frames of this log's generation stand behind its last commit."""
    try:
        data = log.read_bytes()
    except OSError:
        return 0
    if len(data) < _HEADER.size:
        return 0
    header = _HEADER.unpack_from(data)
    page_bytes, salts = header[2], header[4:6]
    frame_bytes = _FRAME_HEADER.size + page_bytes
    torn = 0
    place = _HEADER.size + committed_frames * frame_bytes
    while place + _FRAME_HEADER.size <= len(data):
        if _FRAME_HEADER.unpack_from(data, place)[2:4] != salts:
            break
        torn += 1
        place += frame_bytes
    return torn
