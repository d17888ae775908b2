"""The names of the framings of records. They are in a separate module because `framing` needs schemas, and schemas need
the names.
"""

from __future__ import annotations

from typing import Final, Literal

Framing = Literal["coordinator", "metadata"]
"""How keys and values of a topic's records begin."""

COORDINATOR: Final = "coordinator"
METADATA: Final = "metadata"
