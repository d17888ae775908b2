"""docs/judge-reach.md: which branches of Kafka's classes were reached, and why others were not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from tools.judge.reach.reasons import reason

_HEAD: Final = """\
# What the judge covers

<!-- Written by tools/judge/reach from docs/judge-reach.json, which holds what was measured: make judge-reach. -->

The tables are compared with Kafka's coordinator classes on random histories (`make judge`). This page shows which
lines and branches of these classes run in the histories, and so what the comparison does not test. The numbers were
measured with JaCoCo; only the reasons are written by hand.
"""

_CLASSES: Final = """\
How many of all lines were run and how many of all branches were taken when coordinators wrote a log, loaded one (whole,
up to a cut, after a cleaner, or with lost records), and answered requests after loading. docs/judge-reach.json has
these three apart. Code that only answers or rejects requests is not needed here, so some classes are not complete.
"""

_UNREACHED: Final = """\
## Parts of replay and clean-up that are not covered

The table lists every method that runs in a loading coordinator or a clean-up. It shows the lines that were not run, or
of which a branch was not taken, by the line numbers in the release's sources, and the number of the [reason](#reasons).
If a cell is empty, the whole method was run, or the release does not have it.
"""

_NO_REASON: Final = "**no reason is written down**"


def page(results: Mapping[str, Any]) -> str:
    """The text of the page, from the measurements of each release; the last one is the newest."""
    reasons: dict[str, int] = {}
    measured = [
        f"- Kafka {release}: {result['last'] - result['first'] + 1} histories, seeds {result['first']} to "
        f"{result['last']}, {result['day']}."
        for release, result in results.items()
    ]
    parts = [_HEAD, "\n".join(measured) + "\n", "## Classes\n", _CLASSES, "\n".join(_classes(results)) + "\n"]
    parts += [_UNREACHED, "\n".join(_unreached(results, reasons)) + "\n"]
    numbered = "\n".join(f"{number}. {why}" for why, number in reasons.items())
    parts.append(f"## Reasons\n\n{numbered}\n")
    return "\n".join(parts)


def without_reason(results: Mapping[str, Any]) -> Iterator[str]:
    """The parts of replay and clean-up that are not reached and for which no reason is written yet."""
    for release, result in results.items():
        for name, told in result["classes"].items():
            for method in told["unreached"]:
                if reason(name, method["method"]) is None:
                    yield f"{release}, {name}.{method['method']}, lines {_ranges(method['lines'])}"


def _classes(results: Mapping[str, Any]) -> Iterator[str]:
    """The rows of a table: all phases together, for each release, the newest first."""
    releases = [*results][::-1]
    yield f"| Class | {' | '.join(f'{release}: lines, branches' for release in releases)} |"
    yield f"|---|{'---|' * len(releases)}"
    for name in results[releases[0]]["classes"]:
        found = (results[release]["classes"].get(name) for release in releases)
        cells = ["{}/{}, {}/{}".format(*each["counts"]["ALL"]) if each else "—" for each in found]
        yield f"| `{name}` | {' | '.join(cells)} |"


def _unreached(results: Mapping[str, Any], reasons: dict[str, int]) -> Iterator[str]:
    """The rows of a table. Each reason gets a number when it first appears."""
    yield f"| Method | {' | '.join(f'lines of {release}' for release in results)} | why |"
    yield f"|---|{'---|' * len(results)}--:|"
    found: dict[tuple[str, str], dict[str, str]] = {}
    for release, result in results.items():
        for name, told in result["classes"].items():
            for method in told["unreached"]:
                found.setdefault((name, method["method"]), {})[release] = _ranges(method["lines"])
    classes = list(dict.fromkeys(name for result in results.values() for name in result["classes"]))
    for (name, method), lines in sorted(found.items(), key=lambda each: classes.index(each[0][0])):
        why = reason(name, method)
        note = _NO_REASON if why is None else reasons.setdefault(why, len(reasons) + 1)
        yield f"| `{name}.{method}` | {' | '.join(lines.get(release, '') for release in results)} | {note} |"


def _ranges(lines: Sequence[int]) -> str:
    found = []
    for _, neighbours in groupby(enumerate(lines), lambda numbered: numbered[1] - numbered[0]):
        run = [line for _, line in neighbours]
        found.append(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}")
    return ", ".join(found)
