"""The names of the framings of records, apart from schemas: generated codecs import `framing`, but no schema."""

from __future__ import annotations

from typing import Final, Literal

Framing = Literal["coordinator", "metadata"]
"""How keys and values of a topic's records begin."""

COORDINATOR: Final = "coordinator"
METADATA: Final = "metadata"
