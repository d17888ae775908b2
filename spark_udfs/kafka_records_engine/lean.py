"""The programs of this project start without pandas.

When pyarrow makes its first array, it loads pandas if that is installed, to find out whether its input is a pandas
object. Loading takes as long as reading some ten megabytes, and no program of ours passes pandas objects to pyarrow.
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
    """Hide pandas from imports from now on. Only for this project's programs, never in a user's process."""
    sys.meta_path.insert(0, _finder)


def let_pandas_in() -> None:
    """Make pandas importable again. Pyarrow has decided with its first array whether it works without pandas."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
