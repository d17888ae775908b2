"""What came of a run of pytest, out of the file that its option --junitxml writes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree


class PytestResults(NamedTuple):
    """`tests` is how many ran; a line for each that did not pass, a skipped one among them."""

    tests: int
    failures: tuple[str, ...]


def read_results(path: Path) -> PytestResults:
    """The results in such a file."""
    tests, failures = 0, []
    for case in ElementTree.parse(path).iter("testcase"):
        tests += 1
        for outcome in case:
            if outcome.tag in ("failure", "error", "skipped"):
                said = (outcome.get("message") or "").partition("\n")[0]
                failures.append(f"{case.get('classname')}::{case.get('name')}: {outcome.tag}: {said}")
    return PytestResults(tests, tuple(failures))
