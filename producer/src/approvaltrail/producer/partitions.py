"""Which partition a key belongs to: Kafka's own default, so that every client agrees.

Murmur2 as in Kafka's `org.apache.kafka.common.utils.Utils.murmur2`, and its default partitioner's
choice: the hash without its sign, modulo the number of partitions.
"""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995
_WORD: Final = 0xFFFFFFFF
_CACHED_KEYS: Final = 65_536


def murmur2(data: bytes) -> int:
    """Hash a key to 32 bits, unsigned."""
    length = len(data)
    digest = (_SEED ^ length) & _WORD
    words = length // 4
    for word in struct.unpack_from(f"<{words}I", data):
        mixed = word * _FACTOR & _WORD
        mixed = (mixed ^ mixed >> 24) * _FACTOR & _WORD
        digest = digest * _FACTOR & _WORD ^ mixed
    rest = data[words * 4 :]
    if rest:
        digest = (digest ^ int.from_bytes(rest, "little")) * _FACTOR & _WORD
    digest = (digest ^ digest >> 13) * _FACTOR & _WORD
    return digest ^ digest >> 15


def partitioner(partitions: int) -> Callable[[bytes], int]:
    """Return the function from key to partition, remembering recent keys: a nonce comes thrice."""

    @functools.lru_cache(maxsize=_CACHED_KEYS)
    def partition_of(key: bytes) -> int:
        return (murmur2(key) & 0x7FFF_FFFF) % partitions

    return partition_of
