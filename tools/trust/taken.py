"""Figures of docs/trust.md that other tools store: reached branches and tried releases."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tools.trust.figures import Measured

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"


def _reach(results: Mapping[str, Any]) -> Iterator[tuple[str, Measured]]:
    """Sums over classes for each release, the newest last, with the number of methods that are not reached
    completely."""
    for release, measured in results.items():
        lines, all_lines, branches, all_branches = (
            sum(each["counts"]["ALL"][at] for each in measured["classes"].values()) for at in range(4)
        )
        missing = sum(len(each["unreached"]) for each in measured["classes"].values())
        figures = {
            "histories": f"{measured['last'] - measured['first'] + 1}, seeds {measured['first']} to {measured['last']}",
            "branches": f"{_share(branches, all_branches)} of {len(measured['classes'])} classes",
            "lines": _share(lines, all_lines),
            "methods of replay and clean-up that are not completely covered": str(missing),
        }
        yield f"Kafka {release}", {"day": measured["day"], "figures": figures}


def _releases(cells: Mapping[str, Any]) -> Iterator[tuple[str, Measured]]:
    for subject, title in (("kafka", "Kafka"), ("pyspark", "PySpark"), ("python", "Python")):
        own = {tuple(key.split("/")): cell for key, cell in cells.items() if key.startswith(f"{subject}/")}
        states = Counter(cell["state"] for cell in own.values())
        figures = {
            "releases": ", ".join(dict.fromkeys(key[1] for key in own)),
            "questions": f"{states['passed']} passed, {states['failed']} failed, {states['absent']} cannot be asked",
        }
        yield title, {"day": max(cell["day"] for cell in own.values()), "figures": figures}


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} ({part / whole:.0%})" if whole else "none"


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterator[tuple[str, Measured]]]]] = {
    "judge-reach.json": _reach,
    "support.json": _releases,
}


def taken(file: str, docs: Path = DOCS) -> list[tuple[str, Measured]]:
    """The figures in a file of docs/, each with what it is about."""
    return list(_READERS[file](results(file, docs)))


def results(file: str, docs: Path = DOCS) -> dict[str, Any]:
    """The content of a JSON file of docs/."""
    read: dict[str, Any] = json.loads((docs / file).read_text("utf-8"))
    return read
