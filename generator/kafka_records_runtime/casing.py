"""Names of specs as Python, Arrow and Spark write them."""

from __future__ import annotations

import re
from typing import Final

_HUMP: Final = re.compile("(?<=[a-z])(?=[A-Z])")


def snake_case(name: str) -> str:
    """`_` before each upper-case letter that follows a lower-case one, then lower case, as Kafka does it."""
    return _HUMP.sub("_", name).lower()


def upper_snake_case(name: str) -> str:
    """The constant that belongs to `name`: `OffsetCommitKey` gives `OFFSET_COMMIT_KEY`."""
    return snake_case(name).upper()
