"""All kinds, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tools.incidents import health, late_kinds, log_troubles, more_troubles, reader_kinds, setting_kinds, troubles
from tools.incidents.kinds import KINDS, Kind

EVERY_KIND: Final[Mapping[str, Kind]] = {
    name: each
    for module in (troubles, more_troubles, late_kinds, log_troubles, reader_kinds, setting_kinds, health)
    for name, each in KINDS.items()
    if each.play.__module__ == module.__name__
}
"""The kinds in the order of `--list`: trouble, then health."""
