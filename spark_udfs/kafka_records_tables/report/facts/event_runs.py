"""Finds the last run of recurring events without a long pause."""

from __future__ import annotations

from collections.abc import Sequence


def last_run(times: Sequence[int], pause_ms: int) -> int:
    """The index at which the last run begins: after the last pause longer than `pause_ms`. `times` are ascending."""
    at = len(times) - 1
    while at > 0 and times[at] - times[at - 1] <= pause_ms:
        at -= 1
    return max(at, 0)


def goes_on(times: Sequence[int], now_ms: int) -> bool:
    """Whether another event can still be expected, judged by the intervals between the previous events."""
    usual = (times[-1] - times[0]) / max(len(times) - 1, 1)
    return now_ms - times[-1] <= max(3 * usual, 60_000)
