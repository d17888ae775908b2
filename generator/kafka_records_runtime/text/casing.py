"""Converts names in specs to names for Python, Arrow and Spark."""

from __future__ import annotations

import re
from typing import Final

_HUMP: Final = re.compile("(?<=[a-z])(?=[A-Z])")


def snake_case(name: str) -> str:
    """Insert `_` before each upper-case letter that follows a lower-case one, and convert to lower case, as Kafka
    does."""
    return _HUMP.sub("_", name).lower()


def upper_snake_case(name: str) -> str:
    """The name of the constant for `name`: `OffsetCommitKey` becomes `OFFSET_COMMIT_KEY`."""
    return snake_case(name).upper()
