"""Names that nobody has, and the name that was meant. Loads nothing but the standard library."""

from __future__ import annotations

from collections.abc import Iterable


class UnknownTable(ValueError):
    """A name that no table has."""


class UnknownColumn(ValueError):
    """A name that no column of a table has."""


def near(name: str, names: Iterable[str]) -> str:
    """What to say about a name that is none of `names`: the one that was meant, or all there are."""
    from difflib import get_close_matches

    known = list(names)
    close = get_close_matches(name.lower(), known, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
