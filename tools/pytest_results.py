"""The results of a pytest run, from the file that its option --junitxml writes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree


class PytestResults(NamedTuple):
    """How many tests there were, and a line for each that did not pass."""

    tests: int
    failures: tuple[str, ...]
    skipped: tuple[str, ...]


def read_results(path: Path) -> PytestResults:
    """The results in such a file."""
    tests = 0
    lines: dict[str, list[str]] = {"failure": [], "error": [], "skipped": []}
    for case in ElementTree.parse(path).iter("testcase"):
        tests += 1
        for outcome in case:
            if outcome.tag in lines:
                said = (outcome.get("message") or "").partition("\n")[0]
                lines[outcome.tag].append(f"{case.get('classname')}::{case.get('name')}: {outcome.tag}: {said}")
    return PytestResults(tests, (*lines["failure"], *lines["error"]), tuple(lines["skipped"]))
