"""How many rows are gathered before they are processed in columns, because each step has a fixed cost."""

from __future__ import annotations

from typing import Final

LOT_ROWS: Final = 262_144
"""The usual number of rows. A step whose cost grows with all rows that it holds waits for twice as many as it holds, if
that is more."""

LOT_BYTES: Final = 64 * 1024 * 1024
"""The limit in bytes, as Arrow counts the gathered rows."""
