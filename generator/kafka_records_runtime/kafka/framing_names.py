"""The names of the framings of records. They are not in a module with schemas, because generated codecs import
`framing` but no schema."""

from __future__ import annotations

from typing import Final, Literal

Framing = Literal["coordinator", "metadata"]
"""How the keys and values of a topic's records begin."""

COORDINATOR: Final = "coordinator"
METADATA: Final = "metadata"
