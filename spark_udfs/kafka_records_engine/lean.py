"""Lets this project's programs start without pandas, collect garbage less often, and keep freed memory.

When pyarrow makes its first array, it loads pandas if that is installed, to find out whether its input is a pandas
object. Loading takes as long as reading about ten megabytes, and none of our programs passes pandas objects to pyarrow.
"""

from __future__ import annotations

import gc
import os
import sys


class _NoPandas:
    """An import finder that makes `import pandas` fail."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for pandas; the method that `sys.meta_path` calls."""
        if name == "pandas":
            raise ModuleNotFoundError("left out", name=name)


_finder = _NoPandas()

_ALLOCATIONS = 20_000
"""The number by which allocations must exceed deallocations before garbage is collected. Python's default is 700."""


def leave_pandas_out() -> None:
    """Hide pandas from imports from now on. Call this only in this project's programs, never in a user's process."""
    sys.meta_path.insert(0, _finder)


def collect_rarely() -> None:
    """Search for garbage cycles less often from now on, which saves 5 to 10 % of the reading time. Call this only in
    this project's programs, because their records and tables are freed without garbage collection."""
    gc.set_threshold(_ALLOCATIONS, 10, 10)


def keep_freed_memory() -> None:
    """Let pyarrow, which must not have been imported yet, allocate memory with the C library, unless the user chose an
    allocator. Its usual one gives freed memory back to the system at once, and the system clears it again. This saves
    about 10 % of the time of a report. Call this only in this project's programs, whose workers inherit it."""
    if sys.platform == "linux":
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def let_pandas_in() -> None:
    """Make pandas importable again. Pyarrow still works without pandas if it has already made an array."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
