"""Programs of ours start without pandas.

Pyarrow loads pandas, where that is installed, when it makes its first array: to find out whether what it is handed
comes from there. That takes as long as to read some ten megabytes, and nothing here comes from there.
"""

from __future__ import annotations

import sys


class _NoPandas:
    """Finds no pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """As an entry of `sys.meta_path`."""
        if name == "pandas":
            raise ModuleNotFoundError("left out", name=name)


_finder = _NoPandas()


def leave_pandas_out() -> None:
    """From now on pandas cannot be found. For programs only, never for a process of somebody else."""
    sys.meta_path.insert(0, _finder)


def let_pandas_in() -> None:
    """It can be found again; whether pyarrow had to do without is settled by its first array."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
