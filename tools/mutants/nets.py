"""What catches mutants: answers of Kafka's classes about random histories, then our own tests."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.judge.coordinators import Coordinators, program
from tools.judge.decoded_once import DecodedOnce
from tools.judge.rounds import Written, written
from tools.mutants.drawing import ROOT, SOURCES, Mutant, modules

_LAST_CUTS: Final = 16
"""So many logs are looked at quickly for each mutant,"""
_WHOLE: Final = 2
"""and so many of them in every way, if they reach the changed line."""
_TEST_SECONDS: Final = 20
"""What the tests of a mutant may take by the time that they took unchanged, the quickest first."""

Lines = dict[str, set[int]]
"""Line numbers that were run, by the path of a module from spark_udfs."""


class _Stopped(BaseException):
    """A table differs from what Kafka's classes answer."""


class _Stopping(list[str]):
    """Differences, of which the first one is enough."""

    def append(self, line: str) -> None:
        raise _Stopped(line)


@dataclass
class Log:
    """A log of a history, its records decoded, and the lines that comparing its last cut runs."""

    seed: int
    written: Written
    decoded: DecodedOnce
    lines: Lines
    seconds: float = 0.0


@dataclass
class Test:
    """One of our tests, the lines that it runs and how long it takes."""

    name: str
    lines: Lines
    seconds: float


def recorded_logs(seeds: Sequence[int], folder: Path, tell: Callable[[str], None]) -> list[Log]:
    """Logs that Kafka's coordinators write and answer for, the quickest to compare first; once for all mutants.

    A log about which the tables differ without a mutant is left out and named.
    """
    logs = []
    with Coordinators(folder, program(tell)) as coordinators:
        for seed in seeds:
            for each in written(seed, coordinators):
                logs.append(Log(seed, each, DecodedOnce(each.whole.rows), {}))
    usable = []
    for log in logs:
        start = time.process_time()
        with _LinesRun(log.lines):
            found = difference(log, is_quick=True)
        log.seconds = time.process_time() - start
        if found:
            tell(f"Left out, differs without a mutant: {found}")
        else:
            usable.append(log)
    return sorted(usable, key=lambda log: log.seconds)


class _LinesRun:
    """Notes the lines of the tables that are run inside of it, by coverage.py."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def __enter__(self) -> None:
        coverage: Any = importlib.import_module("coverage")
        tables = str(SOURCES / "kafka_records_tables")
        self._coverage = coverage.Coverage(data_file=None, source=[tables], config_file=False)
        self._coverage._warn_no_data = False
        self._coverage.start()

    def __exit__(self, *_: object) -> None:
        self._coverage.stop()
        data = self._coverage.get_data()
        for file in data.measured_files():
            self._lines[str(Path(file).relative_to(SOURCES))] = set(data.lines(file) or ())


def difference(log: Log, *, is_quick: bool) -> str | None:
    """The first difference between the tables over a log and Kafka's answers; None if there is none."""
    rounds: Any = importlib.import_module("tools.judge.rounds")
    again: Any = importlib.import_module("tools.judge.decoded_once").DecodedOnce
    decoded = again.__new__(again)
    decoded.__dict__.update(log.decoded.__dict__)
    verdict = rounds.Verdict(log.seed, differences=_Stopping())
    try:
        with decoded.used():
            if is_quick:
                rounds.compare_last_cut(log.written.whole, verdict)
            else:
                rounds.compare_log(log.written, verdict)
    except _Stopped as stopped:
        return str(stopped)
    return None


def by_histories(mutant: Mutant, logs: Sequence[Log]) -> str | None:
    """How histories kill a mutant, or None."""
    reaching = [log for log in logs if reaches(log.lines, mutant)]
    for chosen, is_quick in ((reaching[:_LAST_CUTS], True), (_middle(reaching), False)):
        for log in chosen:
            try:
                found = difference(log, is_quick=is_quick)
            except Exception as error:
                # Reading the tables needs the changed module already when it is imported.
                found = f"{type(error).__name__}: {error}"
            if found:
                return found
    return None


def _middle(logs: Sequence[Log]) -> Sequence[Log]:
    """Logs that are neither small nor slow."""
    first = max(0, (len(logs) - _WHOLE) // 2)
    return logs[first : first + _WHOLE]


def by_tests(mutant: Mutant, tests: Sequence[Test]) -> str | None:
    """How our tests kill a mutant, or None: the name of the first that fails."""
    left = float(_TEST_SECONDS)
    chosen: list[str] = []
    for test in sorted((test for test in tests if reaches(test.lines, mutant)), key=lambda test: test.seconds):
        left -= test.seconds
        if left < 0 and chosen:
            break
        chosen.append(test.name)
    if not chosen:
        return None
    watch = _FirstFailure()
    pytest: Any = importlib.import_module("pytest")
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        status = pytest.main([*_PYTEST, "-x", *chosen], plugins=[watch])
    return None if status == 0 else watch.failed or f"pytest ends with {status}"


# The parent has imported what pytest would rewrite.
_PYTEST: Final = (
    "-q",
    "-n0",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
    "-p",
    "no:randomly",
    "-p",
    "no:cacheprovider",
    f"--rootdir={ROOT}",
)


class _FirstFailure:
    """A plugin of pytest that notes what failed."""

    failed: str | None = None

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid


def reaches(lines: Lines, mutant: Mutant) -> bool:
    """Whether a changed line is among those that were run. What is run when a module is imported counts as reached
    where any line of the module is."""
    run = lines.get(mutant.path, set())
    return any(line in run for line in mutant.lines) or (mutant.is_outside_functions and bool(run))


# -- which tests run which lines ---------------------------------------------------------------------------------------

TESTS: Final = (
    "activity assignments checks commit_lots commit_order current_offsets damage deletable_offsets disappearances "
    "expirations group_events groups history latest live_offsets members offset_commits pending_offsets regressions "
    "share_disappearances share_partitions timeline transactions_settled advances cleaned"
)
"""The modules of tests/tables that try what is changed: all of its tables, and its parts alone."""


def measured_tests(folder: Path) -> list[Test]:
    """The tests of TESTS, each module run once under coverage; what it ran is kept in a folder until it changes.

    The lines are those of the modules as they are, so a change of a module that is mutated counts too.
    """
    found = []
    state = hashlib.sha256(b"".join((SOURCES / path).read_bytes() for path in modules()))
    for module in sorted((ROOT / "tests" / "tables").glob("test_*.py")):
        if module.stem.removeprefix("test_") not in TESTS.split():
            continue
        digest = state.copy()
        digest.update(module.read_bytes())
        file = folder / f"{module.stem}-{digest.hexdigest()[:12]}.json"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(_measured(module)), encoding="utf-8")
        for each in json.loads(file.read_text("utf-8")):
            found.append(Test(each["name"], {path: set(run) for path, run in each["lines"].items()}, each["seconds"]))
    return found


def _measured(module: Path) -> list[dict[str, Any]]:
    watch = _Measuring()
    pytest: Any = importlib.import_module("pytest")
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        pytest.main([*_PYTEST, "-m", _MARKS, str(module)], plugins=[watch])
    return [
        {"name": name, "seconds": seconds, "lines": {path: sorted(run) for path, run in watch.lines[name].items()}}
        for name, seconds in watch.seconds.items()
    ]


_MARKS: Final = "not (slow or spark or broker or browser or maven or releases or matrix)"


class _Measuring:
    """A plugin of pytest that notes which lines each test runs. Only tests that pass are used."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, Lines] = {}
        self._failed: set[str] = set()

    def pytest_runtest_protocol(self, item: Any) -> None:
        self._start = time.process_time()
        self._lines = _LinesRun(self.lines.setdefault(item.nodeid, {}))
        self._lines.__enter__()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._lines.__exit__()
        if nodeid not in self._failed:
            self.seconds[nodeid] = time.process_time() - self._start
