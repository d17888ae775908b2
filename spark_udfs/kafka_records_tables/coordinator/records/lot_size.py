"""The number of rows to collect before processing them in columns. Collecting pays off because each step has a fixed
cost."""

from __future__ import annotations

from typing import Final

LOT_ROWS: Final = 262_144
"""The usual number of rows. If the cost of a step grows with the number of rows that it keeps, the step waits for twice
the kept number if that is more."""

LOT_BYTES: Final = 64 * 1024 * 1024
"""The limit in bytes, as Arrow counts them."""
