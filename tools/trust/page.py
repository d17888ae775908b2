"""The text of docs/trust.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tools.trust.figures import Measured
from tools.trust.measurements import MEASUREMENTS, Measurement
from tools.trust.taken import taken

_HEAD: Final = """\
# What is measured

<!-- Written by python -m tools.trust from docs/trust.json, docs/judge-reach.json and docs/support.json. -->

How far can you trust the answers of this project? Each section has the command, what its runs counted and when, what
that proves, and what it does not. Speed is on [its own page](figures.md).
"""
_NOT_MEASURED: Final = "Not measured: no run has recorded figures."


def page(kept: Mapping[str, Measured]) -> str:
    """The text of the page; `kept` has the entries of docs/trust.json by name."""
    return _HEAD + "\n".join(_lines(kept)) + "\n"


def _lines(kept: Mapping[str, Measured]) -> Iterator[str]:
    for each in MEASUREMENTS:
        yield from _section(each, list(_measured(each, kept)))


def _measured(each: Measurement, kept: Mapping[str, Measured]) -> Iterator[tuple[str, Measured]]:
    if each.taken_from:
        yield from taken(each.taken_from)
    elif each.name in kept:
        yield "", kept[each.name]


def _section(each: Measurement, measured: Sequence[tuple[str, Measured]]) -> Iterator[str]:
    yield from ("", f"## {each.title}", "", f"`{each.command}`", "")
    yield from (f"- **Proves**: {each.proves}", f"- **Does not prove**: {each.proves_not}", "")
    if not measured:
        yield _NOT_MEASURED
        return
    for about, entry in measured:
        figures = [f"{label}: {figure}" for label, figure in entry["figures"].items()]
        if about:
            yield f"- {about} ({entry['day']}): {'; '.join(figures)}"
        else:
            yield f"{entry['day']}:"
            yield ""
            yield from (f"- {figure}" for figure in figures)
    if each.taken_from == "judge-reach.json":
        yield ""
        yield "[judge-reach.md](judge-reach.md) has the number of methods that are not covered."
    if each.taken_from == "support.json":
        yield from ("", "[support.md](support.md) has each cell.")
