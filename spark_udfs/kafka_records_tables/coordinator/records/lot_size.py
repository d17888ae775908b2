"""The number of rows that are gathered before they are processed in columns. Gathering pays because each step has a
fixed cost."""

from __future__ import annotations

from typing import Final

LOT_ROWS: Final = 262_144
"""The usual number of rows. A step whose cost grows with all rows that it keeps waits for twice as many as it keeps, if
that is more."""

LOT_BYTES: Final = 64 * 1024 * 1024
"""The limit in bytes, as Arrow counts the gathered rows."""
