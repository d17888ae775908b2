"""Seconds per step of something that is done once for each release."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class TimedSteps:
    """What keeps `seconds` per step."""

    seconds: dict[str, float]

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Measure what is done inside as `step`, also when it fails."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = time.perf_counter() - start
