"""The names of the framings of records, in a separate module, because `framing` needs schemas and schemas need this."""

from __future__ import annotations

from typing import Final, Literal

Framing = Literal["coordinator", "metadata"]
"""How the records of a topic begin."""

COORDINATOR: Final = "coordinator"
METADATA: Final = "metadata"
