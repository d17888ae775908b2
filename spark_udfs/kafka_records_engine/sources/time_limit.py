"""A common time limit for all waits for brokers."""

from __future__ import annotations

import time
from datetime import timedelta
from math import inf


class TimeLimit:
    """A deadline for waiting for brokers. Several sources may share it.

    A copy in another process ends at the same time by the clock of its machine, so the clocks of a Spark cluster must
    agree.
    """

    def __init__(self, seconds: float) -> None:
        """The limit is reached `seconds` from now. Raises ValueError unless that is more than 0."""
        if not 0 < seconds < inf:
            raise ValueError(f"invalid timeout: {seconds:g} s; give more than 0 seconds")
        self.seconds = seconds
        self.end = time.monotonic() + seconds
        """The end as a `time.monotonic` value."""

    @property
    def is_over(self) -> bool:
        """Whether the limit has passed."""
        return time.monotonic() >= self.end

    def __str__(self) -> str:
        return f"the time limit of {self.seconds:g} s"

    def __reduce__(self) -> tuple[object, ...]:
        return _limit_until, (self.seconds, time.time() + self.end - time.monotonic())


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _limit_until(seconds: float, end: float) -> TimeLimit:
    limit = TimeLimit(seconds)
    limit.end = time.monotonic() + end - time.time()
    return limit


Timeout = TimeLimit | timedelta | float
"""The types of a time limit: seconds or a timedelta from now, or a limit that is already running."""


def limit_of(timeout: Timeout | None) -> TimeLimit | None:
    """Convert a caller's `timeout` argument to a time limit. Raises ValueError and TypeError."""
    if timeout is None or isinstance(timeout, TimeLimit):
        return timeout
    if isinstance(timeout, timedelta):
        return TimeLimit(timeout.total_seconds())
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"timeout must be a number of seconds or a timedelta, not {type(timeout).__name__}")
    return TimeLimit(timeout)
