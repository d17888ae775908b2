"""The list of kinds. Each is a function that plays an incident on a scene."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tools.incidents.scene import Scene
from tools.incidents.truth import Truth

Play = Callable[[Scene], Truth]


@dataclass(frozen=True)
class Kind:
    """A kind of incident, or of health that looks like one."""

    name: str
    about: str
    healthy: bool
    settings: Mapping[str, str]
    """The settings of the broker in addition to `scene.SETTINGS`."""
    play: Play


KINDS: Final[dict[str, Kind]] = {}
"""The kinds by name, in the order in which they were declared; `tools.incidents.every_kind` fills it."""


def kind(
    name: str, about: str, settings: Mapping[str, str] = MappingProxyType({}), *, healthy: bool = False
) -> Callable[[Play], Play]:
    """Declare the decorated function as a kind."""

    def declared(play: Play) -> Play:
        KINDS[name] = Kind(name, about, healthy, settings, play)
        return play

    return declared
