"""The durations of the steps of a tool, for tools that do the same steps for each release."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class TimedSteps:
    """A report with `seconds` per step."""

    seconds: dict[str, float]

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the time of the block to `step`, even if the block fails."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = time.perf_counter() - start
