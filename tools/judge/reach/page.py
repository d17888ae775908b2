"""docs/judge-reach.md: which branches of Kafka's classes were reached, and why the others were not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from tools.judge.reach.measured import PHASES
from tools.judge.reach.reasons import reason

_HEAD: Final = """\
# What the judge reaches

<!-- Written by tools/judge/reach from docs/judge-reach.json, which holds what was measured: make judge-reach. -->

The tables are compared with Kafka's coordinator classes on random histories (`make judge`). This page says which lines
and branches of these classes the histories reach, and so what the comparison does not try. JaCoCo counted; only the
reasons are written by hand.

*Writing*: coordinators take calls and timers, write records and replay them. *Loading*: coordinators replay an existing
log: whole, up to a cut, as a cleaner leaves it, and with records lost. *Answering*: loaded coordinators are asked, also
about the next clean-ups. *All*: any of these. A cell has the lines that were run of all lines, and the branches that
were taken of all branches. Tables do not need code that only answers or rejects requests, so *all* is not full.
"""

_UNREACHED: Final = """\
Every method that a loading coordinator or a clean-up enters: its lines that were not run, or of which a branch was not
taken, by the line numbers of the release's sources, and the number of the [reason](#reasons).
"""

_NO_REASON: Final = "**no reason is written down**"


def page(results: Mapping[str, Any]) -> str:
    """The text, for what was measured of each release."""
    parts = [_HEAD]
    reasons: dict[str, int] = {}
    for release, result in results.items():
        count = result["last"] - result["first"] + 1
        parts.append(
            f"## Kafka {release}\n\n{count} histories, seeds {result['first']} to {result['last']}, {result['day']}.\n"
        )
        parts.append("\n".join(_classes(result["classes"])) + "\n")
        parts.append(f"### What of replay and clean-up is not reached in {release}\n\n{_UNREACHED}")
        parts.append("\n".join(_unreached(result["classes"], reasons)) + "\n")
    numbered = "\n".join(f"{number}. {why}" for why, number in reasons.items())
    parts.append(f"## Reasons\n\n{numbered}\n")
    return "\n".join(parts)


def without_reason(results: Mapping[str, Any]) -> Iterator[str]:
    """Parts of replay and clean-up that are not reached and have no reason yet."""
    for release, result in results.items():
        for name, told in result["classes"].items():
            for method in told["unreached"]:
                if reason(name, method["method"]) is None:
                    yield f"{release}, {name}.{method['method']}, lines {_ranges(method['lines'])}"


def _classes(classes: Mapping[str, Any]) -> Iterator[str]:
    yield f"| Class | {' | '.join(phase.lower() for phase in PHASES)} |"
    yield f"|---|{'---|' * len(PHASES)}"
    for name, told in classes.items():
        cells = []
        for phase in PHASES:
            lines, all_lines, taken, branches = told["counts"][phase]
            cells.append(f"{lines}/{all_lines}, {taken}/{branches}")
        yield f"| `{name}` | {' | '.join(cells)} |"


def _unreached(classes: Mapping[str, Any], reasons: dict[str, int]) -> Iterator[str]:
    """The rows of a table. Each reason gets a number when it first appears."""
    yield "| Method | lines | branches | why |"
    yield "|---|---|--:|---|"
    for name, told in classes.items():
        for method in told["unreached"]:
            why = reason(name, method["method"])
            note = _NO_REASON if why is None else reasons.setdefault(why, len(reasons) + 1)
            lines = _ranges(method["lines"])
            yield f"| `{name}.{method['method']}` | {lines} | {method['branches']} | {note} |"


def _ranges(lines: Sequence[int]) -> str:
    found = []
    for _, neighbours in groupby(enumerate(lines), lambda numbered: numbered[1] - numbered[0]):
        run = [line for _, line in neighbours]
        found.append(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}")
    return ", ".join(found)
