"""Functions that the benchmarks share: the name of the machine, the layout of tables, rounded figures, and options for
cases and numbers."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Protocol, TypeVar


def machine() -> str:
    """The machine on which the figures were measured, without the name of the host."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, {platform.system()} {platform.machine()}{_processor()}, {os.cpu_count()} cores"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f" ({names[0]})" if names else ""


def versions(distributions: Iterable[str]) -> dict[str, str]:
    """The installed versions of packages."""
    found = {}
    for distribution in distributions:
        try:
            found[distribution] = installed_version(distribution)
        except PackageNotFoundError:
            found[distribution] = "not installed"
    return found


def table(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as text. The first line has the headers. The first column is aligned left, all others right."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(_aligned(line, widths) for line in lines)


def _aligned(line: Iterable[str], widths: Sequence[int]) -> str:
    first, *rest = (
        f"{cell:<{width}}" if not number else f"{cell:>{width}}"
        for number, (cell, width) in enumerate(zip(line, widths, strict=True))
    )
    return "  ".join([first, *rest]).rstrip()


def pair(figures: tuple[float, float] | None, scale: float = 1.0) -> str:
    """The best figure and the median in one cell; a dash if they were not measured."""
    return "-" if figures is None else " / ".join(three_digits(figure * scale) for figure in figures)


def three_digits(number: float) -> str:
    """A figure with three significant digits."""
    return f"{number:.0f}" if number >= 99.95 else f"{number:.1f}" if number >= 9.995 else f"{number:.2f}"


class Named(Protocol):
    """A case that can be chosen by its name."""

    @property
    def name(self) -> str: ...


_Case = TypeVar("_Case", bound=Named)


def chosen_cases(every: Sequence[_Case], texts: str) -> list[_Case]:
    """The cases whose names contain one of `texts` (separated by commas). Ends the program with a message if there are
    none."""
    wanted = [text.strip().lower() for text in texts.split(",")]
    chosen = [case for case in every if any(text in case.name.lower() for text in wanted)]
    if not chosen:
        names = "\n  ".join(case.name for case in every)
        print(f"no case has {texts!r} in its name; there are\n  {names}", file=sys.stderr)
    return chosen


def positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    """The type of an option whose value must be above zero."""

    def parse(text: str) -> float:
        number = kind(text)
        if not number > 0:
            raise argparse.ArgumentTypeError(f"{text} is not above zero")
        return number

    parse.__name__ = "number"
    return parse
