"""Searching bytes for texts that must, or must not, be in them: as they lie, and unpacked.

Tokens are looked for by their own alphabet: every run of base64url characters is walked, and each
place where a searched text could begin is looked up. So the time does not grow with the number of
texts, and binary bytes beside a text do not hide it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import cramjam

_KEY: Final = 12
_RUN: Final = re.compile(rb"[A-Za-z0-9_.-]{%d,}" % _KEY)
_CHECKSUM: Final = 16
_BLOCK_HEADER: Final = struct.Struct("<BII")
_METHODS: Final = range(0x02, 0xA0)
_LARGEST_BLOCK: Final = 64 << 20


class Needles:
    """Texts to look for, found together in one pass. Each must have twelve characters or more."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_key: dict[bytes, set[bytes]] = {}
        self._count = 0
        for text in set(texts):
            needle = text.encode()
            if len(needle) < _KEY or not _RUN.fullmatch(needle):
                raise ValueError("a searched text has 12 or more base64url characters or dots")
            # The end of a text is looked up: payloads begin alike, and all end differently.
            self._by_key.setdefault(needle[-_KEY:], set()).add(needle)
            self._count += 1

    def __len__(self) -> int:
        """How many texts are looked for."""
        return self._count

    def found_in(self, data: bytes) -> set[str]:
        """Return the texts that stand somewhere in the data."""
        found: set[str] = set()
        for match in _RUN.finditer(data):
            run = match.group()
            for end in range(_KEY, len(run) + 1):
                for needle in self._by_key.get(run[end - _KEY : end], ()):
                    if run.endswith(needle, 0, end):
                        found.add(needle.decode())
        return found


def forms_of(data: bytes) -> Iterator[bytes]:
    """Yield the data as it lies, and unpacked where it is packed in a way that is known here."""
    yield data
    if (unpacked := b"".join(_clickhouse_blocks(data))) != b"":
        yield unpacked
    if data.startswith(b"\x04\x22\x4d\x18"):
        yield bytes(cramjam.lz4.decompress(data))


def _clickhouse_blocks(data: bytes) -> Iterator[bytes]:
    """Unpack a column file: checksum, method, packed size with header, size, then the bytes.

    Blocks of numbers (chains of codecs) are passed over: no text can be in them.
    """
    place = 0
    while place + _CHECKSUM + _BLOCK_HEADER.size <= len(data):
        method, packed, size = _BLOCK_HEADER.unpack_from(data, place + _CHECKSUM)
        start = place + _CHECKSUM + _BLOCK_HEADER.size
        end = place + _CHECKSUM + packed
        if method not in _METHODS or not start < end <= len(data) or size > _LARGEST_BLOCK:
            return
        try:
            yield _unpacked(method, data[start:end], size)
        except cramjam.DecompressionError:
            return
        place = end


def _unpacked(method: int, body: bytes, size: int) -> bytes:
    match method:
        case 0x82:  # LZ4
            return bytes(cramjam.lz4.decompress_block(body, output_len=size))
        case 0x90:  # ZSTD
            return bytes(cramjam.zstd.decompress(body, output_len=size))
        case 0x02:  # not packed
            return body
        case _:
            return b""


def files_under(*roots: Path) -> Iterator[Path]:
    """Yield every ordinary file below the folders."""
    for root in roots:
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield path


def found_in_files(needles: Needles, *roots: Path) -> set[str]:
    """Return the texts that stand in files below the folders, raw or unpacked."""
    found: set[str] = set()
    for path in files_under(*roots):
        try:
            data = path.read_bytes().rstrip(b"\0")  # Kafka sets aside room in advance
        except FileNotFoundError:  # a merge or a checkpoint has just removed it
            continue
        for form in forms_of(data):
            found |= needles.found_in(form)
    return found
