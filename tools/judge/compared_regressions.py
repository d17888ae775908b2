"""The table regressions, against a second opinion out of the records that the coordinators wrote: no question of
theirs is about the past."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tools.judge.answers import Difference, Loaded, differing
from tools.judge.plain_regressions import plain_regressions

_NAME: Final = "regressions"


def regressions(loaded: Loaded) -> Iterator[Difference]:
    """Every fall, by its place in the log."""
    expected = {row["log_offset"]: row for row in plain_regressions(loaded.history.up_to(loaded.cut).to_pylist())}
    rows = loaded.read(_NAME).to_pylist()
    names = [*next(iter(expected.values()), {})]
    got = {row["log_offset"]: {name: row[name] for name in names} for row in rows}
    yield from differing(_NAME, "falls", expected, got)
