"""Distributes tests for `pytest -n 3`: a file at a time, and tests that need the same expensive fixture to one worker.

Every worker is a separate pytest session, and would start its own Spark or broker for the first test that needs one. A
test on another worker only costs time.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from xdist.scheduler import LoadScopeScheduling

ROOT: Final = Path(__file__).resolve().parents[1]

SPARK: Final = "the shared Spark session"
SERVER: Final = "the Connect server"
_ASKED_FOR: Final = (
    (re.compile(r'\b(?:(?:spark|quick|in_jvm): \w*|session: Spark)Session\b|usefixtures\("spark"\)'), SPARK),
    (re.compile(r"\bserver: Server\b"), SERVER),
)
"""How a file requests an expensive fixture, and the name for it."""

_FOLDERS: Final = ("tests/broker/", "tests/cluster/", "tests/generator/")
"""Folders whose files share a broker, a cluster, or the text of the whole generated package."""

_TEXTS: Final = "all texts"
_OF_TEXTS: Final = ("tests/house/test_messages.py", "tests/house/test_plain_words.py")
"""Files that parse the texts of the whole repository."""

FIRST: Final = (
    SPARK,
    "tests/cluster/",
    SERVER,
    "tests/broker/",
    "tests/docs/test_pages.py",
    "tests/page/test_browser.py",
    "tests/tools/test_recorded_incidents.py",
    "tests/cli/test_command.py",
    "tests/tables/test_histories.py",
    "tests/report/test_real_clusters.py",
    "tests/sources/test_killed_snapshots.py",
    "tests/cli/test_table_spark.py",
)
"""Tests that take twenty seconds or more. If they began last, one worker would be busy while the others have ended."""


_WHOLE: Final = ("tests/broker/", "tests/spark/")
"""Files in these folders are not split, because their tests share fixtures that are as expensive."""


def home_of(path: str, test: str = "") -> str:
    """The group in which a file (by its path from the root), or a test of it, is run: the name of an expensive fixture,
    a folder, or the path."""
    text = _text(path)
    things = [thing for asked_for, thing in _ASKED_FOR if asked_for.search(text)]
    if test and not path.startswith(_WHOLE) and test not in _asking(path):
        things = []
    # A broker starts sooner than Spark, so the few files that need both go to Spark's worker.
    folders = [folder for folder in _FOLDERS if path.startswith(folder)]
    texts = [_TEXTS] if path in _OF_TEXTS else []
    return next(iter((*things, *folders, *texts)), path)


@cache
def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def _asking(path: str) -> frozenset[str]:
    """The functions and classes of a file that need an expensive fixture, directly or through another fixture."""
    text = _text(path)
    lines = text.splitlines()
    found: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            own = "\n".join(lines[first - 1 : node.end_lineno])
            words = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
            if words & found or any(asked_for.search(own) for asked_for, _ in _ASKED_FOR):
                found.add(node.name)
    return frozenset(found)


class ByHome(LoadScopeScheduling):  # type: ignore[misc]
    """Gives a worker all tests of one group, then those of the next: the longest first, then those with most tests."""

    def _split_scope(self, nodeid: str) -> str:
        path, _, test = nodeid.partition("::")
        return home_of(path, re.split(r"::|\[", test)[0])

    def _assign_work_unit(self, node: Any) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=_turn), last=False)
        super()._assign_work_unit(node)


def _turn(home: str) -> int:
    return FIRST.index(home) if home in FIRST else len(FIRST)
