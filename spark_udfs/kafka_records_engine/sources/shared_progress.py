"""The progress of several log partitions that are read at the same time, as one number."""

from __future__ import annotations

import threading
from collections.abc import Callable


class SharedProgress:
    """Adds up the bytes that were read from all log partitions."""

    def __init__(self, total: int, on_progress: Callable[[int, int], object] | None) -> None:
        """`on_progress` is called with the number of bytes read so far and with `total`, by one thread at a time."""
        self._total = total
        self._on_progress = on_progress
        self._done: dict[int, int] = {}
        self._lock = threading.Lock()

    def moved(self, number: int, done: int) -> None:
        """Record that `done` bytes of the log partition with this number were read."""
        if self._on_progress is None:
            return
        with self._lock:
            self._done[number] = done
            self._on_progress(min(sum(self._done.values()), self._total), self._total)
