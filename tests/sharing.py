"""How `pytest -n 3` shares the tests out: a file at a time, and files that need the same costly thing to one worker.

Every worker is a pytest session of its own, and would start its own Spark or broker for the first test that asks for
one. A file that is put elsewhere than it belongs costs time and nothing else.
"""

from __future__ import annotations

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
"""How a file asks for a thing, and what the thing is called."""

_FOLDERS: Final = ("tests/broker/", "tests/cluster/", "tests/generator/")
"""Their files share a broker, a cluster, the text of the whole generated package."""

_FIRST: Final = (SPARK, "tests/cluster/", SERVER, "tests/broker/")
"""What takes long for its number of tests: begun last, it would keep one worker busy while the others have ended."""


@cache
def home_of(path: str) -> str:
    """What a file, by its path below the root, is done together with: the name of a thing, a folder, or the path."""
    text = (ROOT / path).read_text(encoding="utf-8")
    things = [thing for asked_for, thing in _ASKED_FOR if asked_for.search(text)]
    # A broker starts sooner than Spark, so the few files that need both go to Spark's worker.
    folders = [folder for folder in _FOLDERS if path.startswith(folder)]
    return next(iter((*things, *folders)), path)


class ByHome(LoadScopeScheduling):  # type: ignore[misc]
    """Gives a worker all tests of one home, then those of the next: the longest first, then those with most tests."""

    def _split_scope(self, nodeid: str) -> str:
        return home_of(nodeid.partition("::")[0])

    def _assign_work_unit(self, node: Any) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=_turn), last=False)
        super()._assign_work_unit(node)


def _turn(home: str) -> int:
    return _FIRST.index(home) if home in _FIRST else len(_FIRST)
