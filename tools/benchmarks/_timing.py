"""Times contenders in turns on one thread, and summarizes the rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from statistics import median
from typing import Any


class ContenderError(Exception):
    """A contender cannot take part in a case. The text has the reason."""


@dataclass
class Timing:
    """One function of a contender, and its processor seconds per call in each round."""

    contender: str
    call: Callable[[Any], Any]
    argument: Any
    loops: int = 1
    rounds: list[float] = field(default_factory=list)

    def calibrate(self, seconds: float) -> None:
        """Choose the number of calls so that they take about `seconds`."""
        while (elapsed := self._run()) < min(seconds, 0.01):
            self.loops *= 4
        self.loops = max(1, round(self.loops * seconds / elapsed))

    def measure(self) -> None:
        self.rounds.append(self._run() / self.loops)

    def _run(self) -> float:
        call, argument = self.call, self.argument
        start = time.thread_time()
        for _ in repeat(None, self.loops):
            call(argument)
        return time.thread_time() - start


def take_turns(timings: Sequence[Timing], rounds: int, seconds: float) -> None:
    """Measure every contender once per round, so that a moment of high load affects all of them."""
    for timing in timings:
        timing.calibrate(seconds)
    for _ in range(rounds):
        for timing in timings:
            timing.measure()


def figures(timings: Iterable[Timing], contender: str) -> tuple[float, float] | None:
    """The best and median seconds per call; None if the contender was not timed."""
    for timing in timings:
        if timing.contender == contender:
            return min(timing.rounds), median(timing.rounds)
    return None


def ratios(timings: Sequence[Timing], contender: str, base: str) -> tuple[float, float] | None:
    """The best and median of a contender, divided by those of `base`; None if one of the two was not timed."""
    theirs, others = figures(timings, contender), figures(timings, base)
    if theirs is None or others is None:
        return None
    return theirs[0] / others[0], theirs[1] / others[1]
