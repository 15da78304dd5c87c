"""Sets of whole numbers as sorted, disjoint ranges with both ends included."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Range = tuple[int, int]
Ranges = list[Range]


def ranges_of(parts: Iterable[Range]) -> Ranges:
    """Put ranges in any order, overlapping or not, into sorted and disjoint form."""
    merged: Ranges = []
    for first, last in sorted(part for part in parts if part[0] <= part[1]):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def without(ranges: Ranges, taken: Ranges) -> Ranges:
    """Return the numbers of the first set that are not in the second."""
    left: Ranges = []
    place = 0
    for first, last in ranges:
        start = first
        while place < len(taken) and taken[place][1] < start:
            place += 1
        scan = place
        while scan < len(taken) and taken[scan][0] <= last:
            if taken[scan][0] > start:
                left.append((start, taken[scan][0] - 1))
            start = max(start, taken[scan][1] + 1)
            scan += 1
        if start <= last:
            left.append((start, last))
    return left


def common(one: Ranges, other: Ranges) -> Ranges:
    """Return the numbers that are in both sets."""
    return without(one, without(one, other))


def split_at(ranges: Ranges, bound: int) -> tuple[Ranges, Ranges]:
    """Return the numbers up to a bound, the bound included, and those above."""
    low = [(first, min(last, bound)) for first, last in ranges if first <= bound]
    high = [(max(first, bound + 1), last) for first, last in ranges if last > bound]
    return low, high


def size(ranges: Ranges) -> int:
    """Return how many numbers there are."""
    return sum(last - first + 1 for first, last in ranges)
