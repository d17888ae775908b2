"""How much is gathered before it is processed in columns: each step has a fixed cost."""

from __future__ import annotations

from typing import Final

LOT_ROWS: Final = 262_144
"""If a step goes over everything that it holds, it waits for twice as many rows as it holds, if that is more."""

LOT_BYTES: Final = 64 * 1024 * 1024
"""The limit in bytes, by Arrow's count of the gathered rows."""
