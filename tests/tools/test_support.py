"""How the page of tried releases is made from runs. `make support` does the runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kafka_records_codegen.evolution.kafka_releases import FetchError
from tools import support as tool
from tools.pytest_results import read_results
from tools.support import ABSENT, FAILED, PASSED, Outcome, Result, cells, main, page, read


def ran(state: str, told: str, day: str = "2026-11-22") -> Result:
    return Result(state, told, seconds=3600, day=day)


JUNIT = """\
<testsuites><testsuite>
<testcase classname="tests.a" name="passes"/>
<testcase classname="tests.a" name="fails"><failure message="first line&#10;second"/></testcase>
<testcase classname="tests.b" name="skips"><skipped message="no Java"/></testcase>
</testsuite></testsuites>
"""


@pytest.fixture
def outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Outcome | Exception]:
    """The results of runs, by question; the files are in `tmp_path`."""
    told: dict[str, Outcome | Exception] = {}

    def asked(question: str, release: str) -> Outcome:
        found = told[f"{question}/{release}"]
        if isinstance(found, Exception):
            raise found
        return found

    questions: Mapping[str, Mapping[str, object]] = {
        axis: {each: (lambda release, each=each: asked(each, release)) for each in of_axis}
        for axis, of_axis in tool.QUESTIONS.items()
    }
    monkeypatch.setattr(tool, "QUESTIONS", questions)
    monkeypatch.setattr(tool, "RESULTS", tmp_path / "support.json")
    monkeypatch.setattr(tool, "PAGE", tmp_path / "support.md")
    return told


def test_a_list_whose_reader_has_enough(tmp_path: Path) -> None:
    """If a pipe is no longer read, there is no traceback, and no further output at exit."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, str(Path(tool.__file__)), "--list"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


class TestRuns:
    def test_each_run_is_kept_and_told_and_what_could_not_be_tried_is_not(
        self, outcomes: dict[str, Outcome | Exception], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        outcomes["judge/4.3.1"] = Outcome(PASSED, "40 histories")
        assert main(["kafka/4.3.1/judge"]) == 0
        outcomes["judge/4.3.1"] = Outcome(FAILED, "2 of 40 differ")
        outcomes["judge/4.0.0"] = FetchError("Maven could not fetch it:\nno network")
        assert main(["kafka/4.3.1/judge", "kafka/4.0*/judge"]) == 1
        assert [line.split(maxsplit=4) for line in capsys.readouterr().out.splitlines()] == [
            ["kafka/4.3.1/judge", "passed", "0", "s", "40 histories"],
            ["kafka/4.0.0/judge", "not", "tried:", "no", "network"],
            ["kafka/4.3.1/judge", "failed", "0", "s", "2 of 40 differ"],
        ]
        kept = read(tmp_path / "support.json")
        assert {name: (each.state, each.told) for name, each in kept.items()} == {
            "kafka/4.3.1/judge": (FAILED, "2 of 40 differ"),
        }
        assert (tmp_path / "support.md").read_text(encoding="utf-8") == page(kept)

    def test_a_release_names_all_its_questions(self, outcomes: dict[str, Outcome | Exception], tmp_path: Path) -> None:
        for question in ("specs", "vectors", "captured", "judge", "broker"):
            outcomes[f"{question}/4.1.1"] = Outcome(PASSED, question)
        assert main(["kafka/4.1.1"]) == 0
        assert list(read(tmp_path / "support.json")) == [
            f"kafka/4.1.1/{each}" for each in ("specs", "vectors", "captured", "judge", "broker")
        ]

    def test_what_another_run_kept_meanwhile_stays(
        self, outcomes: dict[str, Outcome | Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def meanwhile(release: str) -> Outcome:
            outcomes["judge/4.3.1"] = Outcome(PASSED, "40 histories")
            assert main(["kafka/4.3.1/judge"]) == 0
            return Outcome(PASSED, "281 specs")

        questions = {axis: dict(of_axis) for axis, of_axis in tool.QUESTIONS.items()}
        questions["kafka"]["specs"] = meanwhile
        monkeypatch.setattr(tool, "QUESTIONS", questions)
        assert main(["kafka/4.3.1/specs"]) == 0
        assert sorted(read(tmp_path / "support.json")) == ["kafka/4.3.1/judge", "kafka/4.3.1/specs"]

    def test_no_such_cell(self, outcomes: dict[str, Outcome | Exception], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            main(["kafka/9.9.9"])
        assert capsys.readouterr().err.endswith("no cell is called kafka/9.9.9; --list shows them\n")

    def test_the_page_is_held_to_the_results(self, outcomes: dict[str, Outcome | Exception], tmp_path: Path) -> None:
        outcomes["tests/4.1"] = Outcome(PASSED, "79 tests")
        assert main(["--check"]) == 1
        assert main(["pyspark/4.1"]) == 0
        assert main(["--check"]) == 0
        (tmp_path / "support.json").write_text(
            (tmp_path / "support.json").read_text(encoding="utf-8").replace("79", "80"), encoding="utf-8"
        )
        assert main(["--check"]) == 1


class TestPage:
    def test_a_row_per_release_and_what_did_not_pass_below(self) -> None:
        results = {
            "kafka/4.3.1/specs": ran(PASSED, "281 specs"),
            "kafka/4.3.1/judge": ran(FAILED, "a|b <script>\n*c*"),
            "kafka/4.0.0/captured": ran(ABSENT, "no topic was captured", "2026-12-24"),
        }
        text = page(results)
        assert "| 4.3.1 | ✓ 281 specs | *not run* | *not run* | **failed** | *not run* |\n" in text
        assert "| 4.0.0 | *not run* | *not run* | — | *not run* | *not run* |\n" in text
        assert "- 4.3.1, judge: a\\|b \\<script\\> \\*c\\*\n" in text
        assert "- 4.0.0, captured: no topic was captured\n" in text
        assert text.endswith("## When\n\n2026-11-22 to 2026-12-24; 180 minutes of running in all.\n")

    def test_the_order_of_the_runs_does_not_matter(self) -> None:
        results = {str(cell): ran(PASSED, "well", f"2026-11-{number + 1:02}") for number, cell in enumerate(cells())}
        assert page(dict(reversed(results.items()))) == page(results)

    def test_every_cell_has_a_place(self) -> None:
        results = {str(cell): ran(PASSED, f"<{cell}>") for cell in cells()}
        text = page(results)
        assert "*not run*" not in text
        assert all(f"✓ \\<{cell}\\>" in text.replace("\\_", "_") for cell in cells())

    def test_of_this_checkout_is_what_its_results_give(self) -> None:
        assert tool.PAGE.read_text(encoding="utf-8") == page(read(tool.RESULTS))
        assert json.loads(tool.RESULTS.read_text(encoding="utf-8"))


def test_results_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "results.xml").write_text(JUNIT)
    assert read_results(tmp_path / "results.xml") == (
        3,
        ("tests.a::fails: failure: first line",),
        ("tests.b::skips: skipped: no Java",),
    )


def test_the_tests_of_other_pythons_are_those_of_make_quick() -> None:
    shown = subprocess.run(
        ["make", "--dry-run", "quick", "INSTALLED=README.md"], cwd=tool.ROOT, capture_output=True, text=True, check=True
    )
    assert f'-m "{tool.quick()}" --hypothesis-profile=quick' in shown.stdout
    assert "spark" in tool.quick()


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (
            "A.java:1: error: cannot find symbol\n import a.B;\n         ^\n  symbol:   class B\n  location: package a",
            "lacks class B in package a, which tools/judge needs",
        ),
        (
            "A.java:1: error: cannot find symbol\n x\n  symbol: class B\nA.java:2: error: no\n",
            "lacks class B, which tools/judge needs",
        ),
        (
            "A.java:1: error: package a.b does not exist\n x\nA.java:2: error: cannot find symbol\n  symbol:   class C",
            "lacks a.b, which tools/judge needs",
        ),
        ("A.java:1: error: ';' expected\n x", "does not compile with tools/judge: ';' expected"),
        ("no compiler here", "does not compile with tools/judge: no compiler here"),
    ],
)
def test_what_a_compiler_lacks(text: str, missing: str) -> None:
    assert tool._first_missing(text) == missing
