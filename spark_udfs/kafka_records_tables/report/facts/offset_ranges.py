"""Ranges of offsets, as pairs of the first and the last offset (inclusive)."""

from __future__ import annotations

from collections.abc import Iterable

OffsetRange = tuple[int, int]


def merged(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """The same offsets as ascending ranges that neither overlap nor touch; empty ranges are left out."""
    found: list[OffsetRange] = []
    for first, last in sorted(each for each in ranges if each[0] <= each[1]):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def within(ranges: Iterable[OffsetRange], first: int, last: int | None = None) -> list[OffsetRange]:
    """The offsets from `first` up to `last`, or to the end if `last` is None."""
    return merged((max(each[0], first), each[1] if last is None else min(each[1], last)) for each in ranges)


def without(ranges: Iterable[OffsetRange], others: Iterable[OffsetRange]) -> list[OffsetRange]:
    """The offsets that are not in `others`."""
    found, taken = [], merged(others)
    for first, last in merged(ranges):
        for begin, end in taken:
            if begin <= last and end >= first:
                found.append((first, begin - 1))
                first = end + 1
        found.append((first, last))
    return merged(found)


def offset_count(ranges: Iterable[OffsetRange]) -> int:
    """The number of offsets in ranges that do not overlap."""
    return sum(last - first + 1 for first, last in ranges)
