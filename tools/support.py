#!/usr/bin/env python3
"""Find out by trying what works with which release of Kafka, PySpark and Python. See `--help`."""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the one above

from kafka_records_codegen.evolution.kafka_releases import FetchError, cache_folder, fetch_specs  # noqa: E402
from kafka_records_codegen.evolution.spec_sets import read_spec_set  # noqa: E402
from tools.broker import MissingPrerequisite  # noqa: E402
from tools.follow import vectors as kept_vectors  # noqa: E402
from tools.follow.refusals import FollowError  # noqa: E402
from tools.follow.release_vectors import agreement  # noqa: E402
from tools.java_compiler import CompileError  # noqa: E402
from tools.kafka_releases import RELEASE_VARIABLE, SPEC_COUNTS  # noqa: E402
from tools.pytest_results import read_results  # noqa: E402
from tools.round_trip_release import round_trip  # noqa: E402
from tools.spark_releases import RELEASES as SPARK_RELEASES  # noqa: E402
from tools.spark_releases import SetUpError, try_release  # noqa: E402

RESULTS: Final = ROOT / "docs" / "support.json"
PAGE: Final = ROOT / "docs" / "support.md"

_EPILOG = """\
A cell is a release and a question, as kafka/4.0.0/judge, pyspark/4.1/tests or python/3.13/tests. Each one that is asked
for is run, told in a line, and kept in docs/support.json with what was counted and the day; docs/support.md
is written from that file after each of them. What is not asked for stays as it was.

  kafka/RELEASE/specs     every spec of the release loads, and messages of every version come back from their bytes
  kafka/RELEASE/vectors   the release's own classes read the kept vectors and write the same bytes
  kafka/RELEASE/captured  tables over a topic that a broker of the release wrote are what that broker answered
  kafka/RELEASE/judge     tables over random histories are what the release's own coordinator classes answer
  kafka/RELEASE/broker    a live broker of the release: what is read from it and from its files is what it answers
  pyspark/RELEASE/tests   the tests that every PySpark has to pass, with the oldest and newest libraries it goes with
  python/RELEASE/tests    the tests of `make quick`, in an environment of that Python

Pythons are found on the PATH as python3.12 and so on. Kafka's jars come by Maven, packages by pip; both are kept.

exit status: 0 everything that was asked for ran and passed, 1 something did not

examples:
  tools/support.py                            all cells: an hour or two
  tools/support.py 'kafka/4.*' python/3.13/*  some of them
  tools/support.py --list                     what there is, and when it last ran
  tools/support.py --check                    is the page what the results give?
"""

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")

_CAPTURED: Final[Mapping[str, str]] = {"2.8.2": "kafka-2.8", "4.3.1": "kafka-4.3"}
_VECTORS: Final = ROOT / "tests" / "data" / "vectors" / "messages.jsonl.gz"
_SEEDS: Final = 40
_LIVE: Final = ("tests/broker/test_log_directory.py", "tests/broker/test_live_brokers.py")
_EXAMPLES: Final = 3
PASSED, FAILED, ABSENT = "passed", "failed", "absent"


class NotTried(Exception):
    """This machine could not try a cell. The text has the reason. The result of an earlier run stays."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a cell: PASSED or FAILED, or ABSENT if the question does not apply to the release. `told` is a
    short text with counts, or with the reason."""

    state: str
    told: str


@dataclass(frozen=True)
class Cell:
    """A question about a release."""

    axis: str
    release: str
    question: str

    def __str__(self) -> str:
        return f"{self.axis}/{self.release}/{self.question}"


@dataclass(frozen=True)
class Result:
    """An outcome, with its duration in seconds, and the day."""

    state: str
    told: str
    seconds: int
    day: str


# ---- questions about Kafka


def specs(release: str) -> Outcome:
    """All specs of a release: a package is generated from them and tried."""
    with tempfile.TemporaryDirectory() as home:
        report = round_trip(release, fetch_specs(release), Path(home), examples=_EXAMPLES)
    if report.failures:
        return Outcome(FAILED, f"{len(report.failures)} failures, the first: {report.failures[0]}")
    return Outcome(PASSED, f"{report.specs} specs, {report.sent} messages")


def vectors(release: str) -> Outcome:
    """The kept vectors, compared with the message classes of the release."""
    ours = read_spec_set(str(ROOT / "message_specs"), "")
    theirs = read_spec_set(release, "", tell=_tell)
    try:
        found = agreement(kept_vectors.read(_VECTORS), theirs, ours)
    except (MissingPrerequisite, CompileError, FollowError) as error:
        raise NotTried(_last_line(str(error))) from None
    if found.differing:
        return Outcome(FAILED, f"{len(found.differing)} differ, the first: {found.differing[0]}")
    return Outcome(PASSED, found.told)


def captured(release: str) -> Outcome:
    """Tables over a captured topic, compared with the broker that wrote it."""
    if release not in _CAPTURED:
        return Outcome(ABSENT, "no topic was captured")
    return _tests(sys.executable, "tests/tables/test_captured.py", "-k", _CAPTURED[release])


def judge(release: str) -> Outcome:
    """Tables over random histories, compared with the coordinator classes of the release."""
    done = _run([sys.executable, "-m", "tools.judge", f"1-{_SEEDS}"], {RELEASE_VARIABLE: release})
    if done.returncode == 2:
        if "error:" not in done.stderr:
            raise NotTried(_last_line(done.stderr))
        return Outcome(ABSENT, f"it {_first_missing(done.stderr)}")
    if done.returncode:
        return Outcome(FAILED, _last_line(done.stdout))
    return Outcome(PASSED, f"{_SEEDS} histories")


def broker(release: str) -> Outcome:
    """Tables of a live broker of the release, compared with its own answers."""
    if release.startswith("2."):
        return Outcome(ABSENT, "it keeps no groups without ZooKeeper, which tools/broker.py does not start")
    return _tests(sys.executable, *_LIVE, "-m", "not matrix", variables={RELEASE_VARIABLE: release})


# ---- questions about PySpark and Python


def pyspark(release: str) -> Outcome:
    """The tests that every PySpark must pass."""
    try:
        report = try_release(release, None, _tell)
    except SetUpError as error:
        raise NotTried(_last_line(str(error))) from None
    if report.failures:
        return Outcome(FAILED, f"{len(report.failures)} of {report.tests} tests, the first: {report.failures[0]}")
    return Outcome(PASSED, f"{report.tests} tests with PySpark {report.release.pyspark}")


def python(release: str) -> Outcome:
    """The tests of `make quick` on this version of Python."""
    found = shutil.which(f"python{release}")
    version = _run([found, "-c", "import platform; print(platform.python_version())"]) if found else None
    if found is None or version is None or version.returncode:
        raise NotTried(f"no python{release} is on the PATH")
    asked = hashlib.sha256(str(ROOT).encode() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()[:12]
    home = cache_folder() / "pythons" / f"{version.stdout.strip()}-{asked}"
    whole = home / "whole"
    if not whole.exists():  # an environment cannot be moved after it was made: its commands contain its path
        shutil.rmtree(home, ignore_errors=True)
        for command in (
            [found, "-m", "venv", str(home)],
            [str(home / "bin" / "pip"), "install", "--quiet", "--editable", f"{ROOT}[dev]"],
        ):
            done = _run(command)
            if done.returncode:
                raise NotTried(f"its environment cannot be made: {_last_line(done.stderr)}")
        whole.touch()
    outcome = _tests(str(home / "bin" / "python"), "tests", "-m", quick(), "--hypothesis-profile=quick", "-n", "2")
    return Outcome(outcome.state, f"{outcome.told} with Python {version.stdout.strip()}")


QUESTIONS: Final[Mapping[str, Mapping[str, Callable[[str], Outcome]]]] = {
    "kafka": {"specs": specs, "vectors": vectors, "captured": captured, "judge": judge, "broker": broker},
    "pyspark": {"tests": pyspark},
    "python": {"tests": python},
}


def cells() -> Iterator[Cell]:
    """All cells, in the order of the page."""
    releases = {"kafka": tuple(SPEC_COUNTS), "pyspark": tuple(SPARK_RELEASES), "python": PYTHONS}
    for axis, questions in QUESTIONS.items():
        yield from (Cell(axis, release, question) for release in releases[axis] for question in questions)


# ---- running


def quick() -> str:
    """The marks of the tests that `make quick` runs, from the Makefile."""
    found = re.search(r"^QUICK := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def _tests(interpreter: str, *words: str, variables: Mapping[str, str] | None = None) -> Outcome:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "results.xml"
        command = [interpreter, "-m", "pytest", "--quiet", f"--junitxml={path}", *words]
        done = _run(command, variables)
        if not path.is_file():
            return Outcome(FAILED, _last_line(done.stdout + done.stderr))
        results = read_results(path)
    if results.failures or done.returncode:
        first = results.failures[0] if results.failures else _last_line(done.stdout)
        return Outcome(FAILED, f"{len(results.failures)} of {results.tests} tests, the first: {first}")
    # CI is set, so only tests that this machine cannot run are skipped.
    left_out = f", {len(results.skipped)} of them skipped" if results.skipped else ""
    return Outcome(PASSED, f"{results.tests} tests{left_out}")


def _run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CI": "true", **(variables or {})}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it said nothing")


def _first_missing(text: str) -> str:
    """What a release lacks according to the first error of a compiler, as the end of a sentence."""
    symbol = re.compile(r"error: cannot find symbol\n(?:.*\n)*?\s*symbol: +(.*)(?:\n\s*location: +(.*))?")
    found = re.search(r"error: .*", text)
    where = 0 if found is None else found.start()
    if unknown := symbol.match(text, where):
        place = f" in {unknown[2]}" if unknown[2] else ""
        return f"lacks {unknown[1]}{place}, which tools/judge needs"
    # The compiler takes the outer class of a nested class for a package.
    if package := re.compile(r"error: package (\S+) does not exist").match(text, where):
        return f"lacks {package[1]}, which tools/judge needs"
    told = _last_line(text) if found is None else found[0].removeprefix("error: ")
    return f"does not compile with tools/judge: {told}"


# ---- what came of it


def read(path: Path) -> dict[str, Result]:
    """Results by cell; none if the file does not exist."""
    if not path.exists():
        return {}
    return {name: Result(**each) for name, each in json.loads(path.read_text(encoding="utf-8")).items()}


def write(path: Path, results: Mapping[str, Result]) -> None:
    """Write results, in the order of the cells."""
    order = [str(cell) for cell in cells()]
    kept = {name: asdict(results[name]) for name in order if name in results}
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


_HEAD: Final = """\
# What was tried with which release

<!-- Written by tools/support.py from docs/support.json, which holds what came of each run: make support. -->

Every cell is a run and says what it counted, with ✓ if all of it passed. A cell without a run since it was added says
so; — is a question that cannot be asked of that release.
"""

_TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "kafka": (
        "Kafka",
        "- `specs`: every spec of the release loads and is generated; messages of every version come back from their "
        f"bytes, the default one and {_EXAMPLES} random ones.\n"
        "- `vectors`: the release's own classes read the messages in `tests/data/vectors`, and write the same bytes "
        "and JSON. Fields may have other names there, as `compare` says. Changed layouts of early access are left "
        "out.\n"
        "- `captured`: tables over a topic that a broker of the release wrote are what that broker answered.\n"
        f"- `judge`: tables over {_SEEDS} random histories are what the release's own coordinator classes answer.\n"
        "- `broker`: what is read from a live broker of the release, and from its files, is what it answers itself.",
    ),
    "pyspark": ("PySpark", "The tests of `make spark-releases`, with libraries of the release's time."),
    "python": (
        "Python",
        "The tests of `make quick`: all but those of Spark, brokers, browsers and Maven, and the slow ones.",
    ),
}


def page(results: Mapping[str, Result]) -> str:
    """The text of docs/support.md."""
    parts = [_HEAD]
    for axis, (title, meaning) in _TITLES.items():
        questions = list(QUESTIONS[axis])
        rows = [f"| {title} | {' | '.join(questions)} |", f"|---|{'---|' * len(questions)}"]
        notes: dict[tuple[str, str], list[str]] = {}
        for release in dict.fromkeys(cell.release for cell in cells() if cell.axis == axis):
            shown = []
            for question in questions:
                result = results.get(f"{axis}/{release}/{question}")
                shown.append(_shown(result))
                if result and result.state != PASSED:
                    notes.setdefault((question, _plain(result.told)), []).append(release)
            rows.append(f"| {release} | {' | '.join(shown)} |")
        parts += [f"## {title}\n\n{meaning}\n", "\n".join(rows) + "\n"]
        if notes:
            lines = [f"- {', '.join(releases)}, {question}: {told}" for (question, told), releases in notes.items()]
            parts.append("\n".join(lines) + "\n")
    if results:
        days = sorted(each.day for each in results.values())
        when = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
        minutes = sum(each.seconds for each in results.values()) / 60
        parts.append(f"## When\n\n{when}; {minutes:.0f} minutes of running in all.\n")
    return "\n".join(parts)


def _shown(result: Result | None) -> str:
    if result is None:
        return "*not run*"
    return {PASSED: f"✓ {_plain(result.told)}", FAILED: "**failed**", ABSENT: "—"}[result.state]


def _plain(text: str) -> str:
    """The text as one line that Markdown does not change."""
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", " ".join(text.split()))


# ---- the command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="support.py",
        description="Find out by trying what works with which release of Kafka, PySpark and Python.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cells", nargs="*", metavar="CELL", help="patterns of cells (default: all)")
    parser.add_argument("--list", action="store_true", help="list the cells and when they ran")
    parser.add_argument("--check", action="store_true", help="exit with 1 if the page does not match the results")
    asked = parser.parse_args(arguments)
    results = read(RESULTS)
    if asked.check:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page(results):
            return 0
        _tell("docs/support.md is not what docs/support.json gives: run make support, or tools/support.py with a cell")
        return 1
    chosen = [cell for cell in cells() if not asked.cells or any(_is(cell, each) for each in asked.cells)]
    if not chosen:
        parser.error(f"no cell is called {' or '.join(asked.cells)}; --list shows them")
    if asked.list:
        _list(chosen, results)
        return 0
    return _run_all(chosen)


def _list(chosen: Sequence[Cell], results: Mapping[str, Result]) -> None:
    try:
        for cell in chosen:
            found = results.get(str(cell))
            print(f"{cell!s:28}{f'{found.state:8}{found.day}  {found.told}' if found else 'not run'}")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does. Flushing the buffered output at exit must not raise the same error
        # again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is(cell: Cell, pattern: str) -> bool:
    return fnmatch.fnmatchcase(str(cell), pattern) or str(cell).startswith(f"{pattern.rstrip('/')}/")


def _run_all(chosen: Sequence[Cell]) -> int:
    status = 0
    for cell in chosen:
        begun = time.monotonic()
        try:
            outcome = QUESTIONS[cell.axis][cell.question](cell.release)
        except (FetchError, NotTried) as error:
            print(f"{cell!s:28}not tried: {_last_line(str(error))}", flush=True)
            status = 1
            continue
        day = datetime.now(UTC).date().isoformat()
        seconds = round(time.monotonic() - begun)
        # Another run may have written other cells in the meantime.
        results = read(RESULTS) | {str(cell): Result(outcome.state, outcome.told, seconds, day)}
        write(RESULTS, results)
        PAGE.write_text(page(results), encoding="utf-8")
        print(f"{cell!s:28}{outcome.state:8}{seconds:5} s  {outcome.told}", flush=True)
        status = max(status, int(outcome.state == FAILED))
    return status


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
