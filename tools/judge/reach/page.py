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
these histories do not run. JaCoCo measured which lines and branches they run.
docs/judge-reach.json has the lines that were not run, and counts by class, for writing, loading and answering apart.
"""

_UNREACHED: Final = """\
## Parts of replay and clean-up that are not covered

The number of methods that run in a loading coordinator or a clean-up, and have lines or branches that no history runs.
Most are guards against what cannot happen, or records that no broker writes. tools/judge/reach/reasons.py has the
reason for each, and tests/tables/planted_conflicts.py has logs at which coordinators stop loading.
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
    """A table of the methods by class and release, and a list of those without a reason."""
    counts: dict[str, dict[str, int]] = {}
    unexplained: dict[str, None] = {}
    for release, result in results.items():
        for name, told in result["classes"].items():
            if told["unreached"]:
                counts.setdefault(name, {})[release] = len(told["unreached"])
            for method in told["unreached"]:
                if reason(name, method["method"]) is None:
                    unexplained[f"`{name}.{method['method']}`"] = None
    yield f"| class | {' | '.join(results)} |"
    yield f"|---|{'--:|' * len(results)}"
    for name, by_release in counts.items():
        yield f"| `{name}` | {' | '.join(str(by_release.get(release, 0)) for release in results)} |"
    if unexplained:
        yield ""
        yield f"- {_NO_REASON} {', '.join(unexplained)}"


def _ranges(lines: Sequence[int]) -> str:
    found = []
    for _, neighbours in groupby(enumerate(lines), lambda numbered: numbered[1] - numbered[0]):
        run = [line for _, line in neighbours]
        found.append(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}")
    return ", ".join(found)
