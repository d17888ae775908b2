"""docs/judge-reach.md: which branches of Kafka's classes were reached, and why others were not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from tools.judge.reach.reasons import reason

_HEAD: Final = """\
# What the judge covers

<!-- Written by tools/judge/reach from docs/judge-reach.json, which holds what was measured: make judge-reach. -->

`make judge` compares the tables with Kafka's coordinator classes on random histories. It cannot find a mistake in what
these histories do not run. JaCoCo measured which lines and branches they run; only the reasons are written by hand.
docs/judge-reach.json has the lines that were not run, and counts by class, for writing, loading (whole logs, up to a
cut, after a cleaner, with lost records) and answering apart.
"""

_UNREACHED: Final = """\
## Parts of replay and clean-up that are not covered

The methods that run in a loading coordinator or a clean-up, and have lines or branches that no history runs, by reason.
A release is named if the method is complete in the others, or missing there.
"""

_NO_REASON: Final = "**No reason is written down.**"


def page(results: Mapping[str, Any]) -> str:
    """The text of the page, from the measurements of each release; the last one is the newest."""
    measured = [
        f"- Kafka {release}: {result['last'] - result['first'] + 1} histories, seeds {result['first']} to "
        f"{result['last']}, {result['day']}."
        for release, result in results.items()
    ]
    return "\n".join([_HEAD, "\n".join(measured) + "\n", _UNREACHED, "\n".join(_unreached(results)) + "\n"])


def without_reason(results: Mapping[str, Any]) -> Iterator[str]:
    """The parts of replay and clean-up that are not reached and for which no reason is written yet."""
    for release, result in results.items():
        for name, told in result["classes"].items():
            for method in told["unreached"]:
                if reason(name, method["method"]) is None:
                    yield f"{release}, {name}.{method['method']}, lines {_ranges(method['lines'])}"


def _unreached(results: Mapping[str, Any]) -> Iterator[str]:
    """The elements of a list, one for each reason: the methods that it is about."""
    found: dict[tuple[str, str], list[str]] = {}
    for release, result in results.items():
        for name, told in result["classes"].items():
            for method in told["unreached"]:
                found.setdefault((name, method["method"]), []).append(release)
    classes = list(dict.fromkeys(name for result in results.values() for name in result["classes"]))
    methods: dict[str, list[str]] = {}
    for (name, method), releases in sorted(found.items(), key=lambda each: classes.index(each[0][0])):
        only = f" ({', '.join(releases)})" if len(releases) < len(results) else ""
        methods.setdefault(reason(name, method) or _NO_REASON, []).append(f"`{name}.{method}`{only}")
    for why, named in methods.items():
        yield f"- {why} {', '.join(named)}"


def _ranges(lines: Sequence[int]) -> str:
    found = []
    for _, neighbours in groupby(enumerate(lines), lambda numbered: numbered[1] - numbered[0]):
        run = [line for _, line in neighbours]
        found.append(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}")
    return ", ".join(found)
