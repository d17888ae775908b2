"""What the framings of records are called, in a module of its own: `framing` needs schemas, and schemas need this."""

from __future__ import annotations

from typing import Final, Literal

Framing = Literal["coordinator", "metadata"]
"""How the records of a topic begin."""

COORDINATOR: Final = "coordinator"
METADATA: Final = "metadata"
