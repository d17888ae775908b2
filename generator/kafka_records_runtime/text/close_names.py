"""Suggests the name that the user probably meant by an unknown name. Needs only the standard library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LIKENESS: Final = 0.7
"""How similar two names must be, from 0 to 1 (`difflib.SequenceMatcher.ratio`). Names below this limit are mostly
unrelated words of the same length."""


def close_names(name: str, names: Iterable[str], most: int = 1, likeness: float = LIKENESS) -> list[str]:
    """At most `most` of the `names` that are similar to `name`, the closest first. Case and `_` are ignored."""
    from difflib import get_close_matches

    by_folded = {_folded(each): each for each in names}
    return [by_folded[each] for each in get_close_matches(_folded(name), by_folded, most, likeness)]


def close_name(name: str, names: Iterable[str], likeness: float = LIKENESS) -> str | None:
    """The closest of the `names`; None if none is close."""
    return next(iter(close_names(name, names, 1, likeness)), None)


def _folded(name: str) -> str:
    return name.replace("_", "").lower()
