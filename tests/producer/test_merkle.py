"""Merkle trees: the roots and paths of RFC 6962."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvaltrail.producer.merkle import (
    EMPTY_ROOT,
    MerkleTree,
    inclusion_path,
    merkle_root,
    root_from_path,
)

# The entries and roots that Certificate Transparency's implementations test with.
ENTRIES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)


@pytest.mark.parametrize("size", range(1, 9))
def test_known_roots(size: int) -> None:
    """The root over the first entries is the one that Certificate Transparency publishes."""
    assert merkle_root(ENTRIES[:size]).hex() == ROOTS[size - 1]


def test_empty_root() -> None:
    """The root over no entries is the hash of nothing."""
    assert merkle_root([]) == EMPTY_ROOT == hashlib.sha256(b"").digest()


def test_known_path() -> None:
    """The path of the first of eight entries is the one that RFC 6962's example tree has."""
    path = [step.hex() for step in inclusion_path(ENTRIES, 0)]
    assert path[0] == "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"
    assert path[1] == "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"
    assert path[2] == "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"


@given(st.lists(st.binary(max_size=8), min_size=1, max_size=40), st.data())
def test_paths_prove_inclusion(entries: list[bytes], data: st.DataObject) -> None:
    """Every entry's path leads to the root, and no other entry's does."""
    place = data.draw(st.integers(0, len(entries) - 1))
    path = inclusion_path(entries, place)
    root = merkle_root(entries)
    assert root_from_path(entries[place], place, len(entries), path) == root
    assert root_from_path(entries[place] + b"!", place, len(entries), path) != root
    if path:
        assert root_from_path(entries[place], place, len(entries), path[:-1]) != root


@given(st.lists(st.binary(max_size=8), max_size=70))
def test_growing_tree(entries: list[bytes]) -> None:
    """A tree that grew entry by entry has the root that the RFC's recursion defines."""
    tree = MerkleTree()
    for entry in entries:
        tree.add(entry)
    assert tree.root() == _defined(entries)
    assert tree.size == len(entries)


def _defined(entries: list[bytes]) -> bytes:
    if not entries:
        return hashlib.sha256(b"").digest()
    if len(entries) == 1:
        return hashlib.sha256(b"\x00" + entries[0]).digest()
    split = 1
    while split * 2 < len(entries):
        split *= 2
    left, right = _defined(entries[:split]), _defined(entries[split:])
    return hashlib.sha256(b"\x01" + left + right).digest()
