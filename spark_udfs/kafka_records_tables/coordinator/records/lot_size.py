"""The number of rows that are gathered before they are processed in columns. Gathering is worthwhile because each step
has a fixed cost."""

from __future__ import annotations

from typing import Final

LOT_ROWS: Final = 262_144
"""The usual number of rows. If the cost of a step grows with the number of rows that it keeps, the step waits for twice
this number, if it is larger."""

LOT_BYTES: Final = 64 * 1024 * 1024
"""The limit in bytes, as Arrow counts the gathered rows."""
