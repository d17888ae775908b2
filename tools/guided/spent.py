"""The processor time and inputs of fuzzing, in docs/trust.json."""

from __future__ import annotations

import re
from typing import Final

from tools.trust.figures import kept, record

_MEASUREMENT: Final = "fuzz"
_ALL: Final = "minutes of a processor, all targets"
_SPENT: Final = re.compile(r"(\d+) inputs, ([\d.]+) minutes of a processor")


def add(name: str, inputs: int, seconds: float) -> None:
    """Add to the figures of earlier runs of the target. Findings of earlier runs were fixed, or are in the text."""
    figures = dict(kept().get(_MEASUREMENT, {"figures": {}})["figures"])
    told = figures.get(name, "0 inputs, 0 minutes of a processor")
    before = _SPENT.match(told)
    assert before is not None, told
    sums = f"{int(before[1]) + inputs} inputs, {float(before[2]) + seconds / 60:.1f} minutes of a processor"
    figures[name] = sums + told[before.end() :]
    spent = [found for found in map(_SPENT.match, figures.values()) if found]
    record(_MEASUREMENT, {**figures, _ALL: f"{sum(float(each[2]) for each in spent):.1f}"})
