"""What somebody may have meant who mistyped a name."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, names: Iterable[str], most: int = 3) -> str:
    """`; did you mean a or b?` with `most` of the `names` that are close to `name`, the closest first; "" for none."""
    from difflib import get_close_matches

    by_folded = {each.lower(): each for each in names}
    close = [by_folded[each] for each in get_close_matches(name.lower(), by_folded, n=most)]
    return f"; did you mean {' or '.join(close)}?" if close else ""
