"""Compares the table `regressions` with a second implementation over the records of the coordinators, because
coordinators cannot be asked about the past."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tools.judge.answers import Difference, Loaded, differing
from tools.judge.plain_regressions import plain_regressions

_NAME: Final = "regressions"


def regressions(loaded: Loaded) -> Iterator[Difference]:
    """Compare all falls by their places in the log."""
    expected = {row["log_offset"]: row for row in plain_regressions(loaded.history.up_to(loaded.cut).to_pylist())}
    rows = loaded.read(_NAME).to_pylist()
    names = [*next(iter(expected.values()), {})]
    got = {row["log_offset"]: {name: row[name] for name in names} for row in rows}
    yield from differing(_NAME, "falls", expected, got)
