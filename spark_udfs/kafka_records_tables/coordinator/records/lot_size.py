"""How much is gathered before a step that works in columns looks at it: each look has a price of its own."""

from __future__ import annotations

from typing import Final

LOT_ROWS: Final = 262_144
"""A step that goes over what it holds each time waits for twice as many as it holds, if that is more."""

LOT_BYTES: Final = 64 * 1024 * 1024
"""Of what Arrow counts for the gathered rows."""
