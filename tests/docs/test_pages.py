"""README and the pages for readers show real output. Every console block and every Python block is run.

Blocks marked `sh` or `py` install things or need other machines, and are not run. The same goes for docs/cluster.md.
"""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.docs.pages import blocks, commands, run_console, run_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "README.md",
    "docs/command.md",
    "docs/sql.md",
    "docs/generator.md",
    "docs/python.md",
    "docs/report.md",
    "docs/snapshots.md",
    "docs/spark.md",
    "docs/start/decode-in-spark.md",
    "docs/start/may-i-delete.md",
    "docs/start/stuck-transaction.md",
    "docs/start/who-is-behind.md",
    "docs/start/why-offsets-vanished.md",
    "docs/start/will-it-load.md",
    "docs/streams.md",
)
OTHERS = ("docs/report.md", "docs/start/decode-in-spark.md")
"""Pages whose commands are similar to those of other pages. Only `make matrix` runs them."""
RUN = tuple(pytest.param(page, marks=pytest.mark.matrix if page in OTHERS else ()) for page in PAGES)
WITH_SPARK = ("README.md", "docs/spark.md", "docs/start/decode-in-spark.md", "docs/streams.md")


def environment() -> dict[str, str]:
    """Only the variables that a reader has in the shell: the page sets the Python of workers."""
    ours = ("PYSPARK_", "SPARK_LOCAL_", "SPARK_HOME", "PYTEST_")
    taken = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {
        **taken,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONIOENCODING": "utf-8",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


class Consoles(NamedTuple):
    """The output of the commands of a page, and the clone in which they ran, with the files that they wrote."""

    clone: Path
    found: list[str]


@pytest.fixture(scope="module")
def consoles(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Consoles]:
    """Runs the commands of a page, once, in a folder that looks like a clone."""

    @cache
    def run(page: str) -> Consoles:
        clone = tmp_path_factory.mktemp("clone")
        for name in ("docs", "examples", "message_specs", "tests"):
            (clone / name).symlink_to(ROOT / name)
        return Consoles(clone, [run_console(block, clone, environment()) for block in blocks(ROOT / page, "console")])

    return run


def compare(found: list[str], shown: list[str]) -> None:
    """Fail with all lines that differ."""
    there, here = ("\n".join(blocks).splitlines() for blocks in (shown, found))
    if lines := list(difflib.unified_diff(there, here, "what the page shows", "what comes out", n=1, lineterm="")):
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.mark.parametrize("page", RUN)
def test_commands_print_what_the_page_shows(page: str, consoles: Callable[[str], Consoles]) -> None:
    compare(consoles(page).found, blocks(ROOT / page, "console"))


def run_pythons(*pages: str, consoles: Callable[[str], Consoles]) -> dict[str, list[str]]:
    """By page, its Python blocks with their real output, all pages in one process.

    Files that a page's Python code imports are written by its commands.
    """
    clones = {page: str(consoles(page).clone) for page in pages}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.docs.pages",
            *(word for page in pages for word in (clones[page], str(ROOT / page))),
        ],
        cwd=clones[pages[0]],
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {page: json.loads(done.stdout)[str(ROOT / page)] for page in pages}


@pytest.mark.parametrize(
    "page",
    [each for each, page in zip(RUN, PAGES, strict=True) if page not in WITH_SPARK and blocks(ROOT / page, "python")],
)
def test_python_gives_what_the_page_shows(page: str, consoles: Callable[[str], Consoles]) -> None:
    compare(run_pythons(page, consoles=consoles)[page], blocks(ROOT / page, "python"))


@pytest.mark.spark
def test_python_of_readme_gives_what_it_shows(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a session of the Spark that the tests share."""
    monkeypatch.setattr(type(spark), "_instantiatedSession", spark.newSession())
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.chdir(ROOT)
    shown = blocks(ROOT / "README.md", "python")
    names: dict[str, Any] = {"__name__": "__main__"}
    compare([run_python(block, names) for block in shown], shown)


@pytest.mark.spark
@pytest.mark.matrix
def test_python_with_spark_gives_what_the_pages_show(consoles: Callable[[str], Consoles]) -> None:
    found = run_pythons(*WITH_SPARK, consoles=consoles)
    for page in WITH_SPARK:
        compare(found[page], blocks(ROOT / page, "python"))


def test_no_page_that_is_run_lacks_what_could_be_run() -> None:
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert blocks(ROOT / page, "console") or blocks(ROOT / page, "python")
        assert ("spark" in "".join(blocks(ROOT / page, "python"))) == (page in WITH_SPARK), text[:100]


# -- the runner --------------------------------------------------------------------------------------------------------


def test_a_command_over_several_lines() -> None:
    block = "$ echo a \\\n    b\na b\n$ cat <<'EOF'\n$ no command\nEOF\n$ no command\nno command\n$ true\n"
    assert commands(block) == ["echo a \\\n    b", "cat <<'EOF'\n$ no command\nEOF", "no command", "true"]


def test_a_shell_keeps_what_was_set_and_the_status(tmp_path: Path) -> None:
    block = "$ x=3; (exit $x)\n$ echo $? $x\n3 3\n$ echo out; echo err >&2\nout\nerr\n"
    assert run_console(block, tmp_path, environment()) == block


def test_a_command_that_prints_something_else_is_seen(tmp_path: Path) -> None:
    assert run_console("$ echo 1\n2\n$ echo 3\n", tmp_path, environment()) == "$ echo 1\n1\n$ echo 3\n3\n"


def test_values_and_prints_of_expressions_are_compared_and_comments_are_not() -> None:
    block = "# Why.\nx = [\n    1,\n]\n# What for.\nx + [2]  # more\n# [1, 3]\n\nprint(x)\n# [1]\n\nx.append(4)\nx\n"
    assert run_python(block, {}) == block.replace("[1, 3]", "[1, 2]")


def test_empty_lines_at_the_end_of_what_is_printed_are_not_shown() -> None:
    block = 'print("a\\n\\nb\\n")\n# a\n#\n# b\n'
    assert run_python(block, {}) == block


def test_an_error_is_seen() -> None:
    assert run_python("1 / 0\n# 1\n", {}).endswith("ZeroDivisionError: division by zero\n")
