"""Merkle trees as in RFC 6962 (Certificate Transparency), section 2.1."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

EMPTY_ROOT: Final = hashlib.sha256(b"").digest()
_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"


def leaf_hash(data: bytes) -> bytes:
    """Hash one entry."""
    return hashlib.sha256(_LEAF + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two subtrees into their parent."""
    return hashlib.sha256(_NODE + left + right).digest()


class MerkleTree:
    """Grows entry by entry, keeping only the roots of its complete subtrees."""

    def __init__(self) -> None:
        self._subtrees: list[tuple[int, bytes]] = []
        self.size = 0

    def add(self, data: bytes) -> None:
        """Append one entry."""
        width, digest = 1, leaf_hash(data)
        subtrees = self._subtrees
        while subtrees and subtrees[-1][0] == width:
            digest = node_hash(subtrees.pop()[1], digest)
            width *= 2
        subtrees.append((width, digest))
        self.size += 1

    def root(self) -> bytes:
        """Return the tree's hash; the empty tree's is the hash of nothing."""
        if not self._subtrees:
            return EMPTY_ROOT
        digest = self._subtrees[-1][1]
        for _, left in reversed(self._subtrees[:-1]):
            digest = node_hash(left, digest)
        return digest


def merkle_root(entries: Iterable[bytes]) -> bytes:
    """Return the root over these entries in order."""
    tree = MerkleTree()
    for entry in entries:
        tree.add(entry)
    return tree.root()


def inclusion_path(entries: Sequence[bytes], place: int) -> tuple[bytes, ...]:
    """Return the audit path of one entry (section 2.1.1), nearest neighbour first.

    Raises:
        IndexError: there is no entry at this place.
    """
    if not 0 <= place < len(entries):
        raise IndexError(f"no entry {place} among {len(entries)}")
    if len(entries) == 1:
        return ()
    split = _split(len(entries))
    if place < split:
        return (*inclusion_path(entries[:split], place), merkle_root(entries[split:]))
    return (*inclusion_path(entries[split:], place - split), merkle_root(entries[:split]))


def root_from_path(data: bytes, place: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root to which an entry and its path lead, or None where they do not fit a tree.

    Follows RFC 9162, section 2.1.3.2; compare the result with a sealed root.
    """
    if not 0 <= place < size:
        return None
    digest, node, last = leaf_hash(data), place, size - 1
    for neighbour in path:
        if last == 0:
            return None
        if node & 1 or node == last:
            digest = node_hash(neighbour, digest)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            digest = node_hash(digest, neighbour)
        node, last = node >> 1, last >> 1
    return digest if last == 0 else None


def _split(size: int) -> int:
    """Return the largest power of two below the size."""
    return 1 << (size - 1).bit_length() - 1
