#!/usr/bin/env python3
"""Run the tests that every supported PySpark must pass, each release in its own environment. See `--help`."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the one above

from kafka_records_codegen.evolution.kafka_releases import cache_folder, keep  # noqa: E402
from tools.pytest_results import read_results  # noqa: E402
from tools.timed_steps import TimedSteps  # noqa: E402

_EPILOG = """\
Each release gets a virtual environment with that PySpark, with numpy, pandas and pyarrow of its time (the first with
the oldest that pyproject.toml allows, the last with the newest it was tried with), and with what the tests need.
msgspec is not there: nothing that Spark runs may want it. The sources of this checkout are tested as they are, and
the jar that `make jar` built of them, which is the same for every release.

A release passes when every test passes and none is skipped. Prints one line per release, below it one line per test
that did not pass, and a summary; what pytest says about a release that does not pass goes to standard error.

Environments stay in $KAFKA_RECORDS_CACHE, by default kafka-records in the user's cache directory, and are recreated
when a version in them changes. One takes pip a minute or two and 0.7 GB of disk; delete them at any time. They need
Python 3.11, since PySpark 3.5 knows no newer one, and Java 17 or later.

exit status: 0 all pass, 1 failures, 2 an environment that cannot be made

examples:
  tools/spark_releases.py --all                              all of them
  tools/spark_releases.py --releases 3.5 4.3                 the oldest and the newest
  tools/spark_releases.py --releases 4.0 -k streaming        only the tests whose names match
"""

_UNCLOSED: Final = "ignore:unclosed <socket:ResourceWarning"
_DISTUTILS: Final = (
    "ignore:The distutils package is deprecated:DeprecationWarning",
    "ignore:distutils Version classes are deprecated:DeprecationWarning",
)


@dataclass(frozen=True)
class Release:
    """A release of PySpark, and the libraries for its tests. `noise` has filters for warnings about PySpark's own
    code."""

    pyspark: str
    numpy: str
    pandas: str
    pyarrow: str
    noise: tuple[str, ...] = ()

    @property
    def pins(self) -> Mapping[str, str]:
        return {name: getattr(self, name) for name in ("pyspark", "numpy", "pandas", "pyarrow")}


RELEASES: Final[Mapping[str, Release]] = {
    "3.5": Release("3.5.9", numpy="1.26.0", pandas="2.2.0", pyarrow="17.0.0", noise=(*_DISTUTILS, _UNCLOSED)),
    "4.0": Release("4.0.5", numpy="2.0.2", pandas="2.2.3", pyarrow="18.1.0", noise=(_UNCLOSED,)),
    "4.1": Release("4.1.4", numpy="2.2.6", pandas="2.3.0", pyarrow="20.0.0", noise=(_UNCLOSED,)),
    "4.2": Release("4.2.1", numpy="2.3.5", pandas="2.3.3", pyarrow="23.0.1"),
    "4.3": Release("4.3.0", numpy="2.4.6", pandas="2.3.3", pyarrow="26.0.1"),
}
"""The minor releases of PySpark, oldest first."""

TESTS: Final = (
    "tests/spark/across_releases",
    "tests/spark/test_decode.py",
    "tests/spark/test_raw.py",
    "tests/tables/test_captured.py",
)
"""The tests that must pass on each release."""

_QUICK_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Many small queries end before Java's optimizing compiler is worth its cost: without it they take half the time."""

TEST_TOOLS: Final = ("pytest>=9", "hypothesis>=6.150")

_PYTHON: Final = (3, 11)

Tell = Callable[[str], None]


class SetUpError(Exception):
    """An environment cannot be made. The text has the reason, with pip's error if there is one."""


# ---- environments


def environment(release: Release, tell: Tell) -> Path:
    """The folder of the virtual environment for `release`. It is made if the cache has none. Raises SetUpError."""
    wanted = [*(f"{name}=={version}" for name, version in release.pins.items()), *TEST_TOOLS]
    key = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:12]
    home = cache_folder() / "pyspark" / f"{release.pyspark}-{key}"
    if not home.is_dir():
        names = ", ".join(f"{name} {version}" for name, version in release.pins.items())
        tell(f"Setting up {names} (a minute or two)")
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
            made = Path(scratch) / "environment"
            _make(made, wanted)
            # The folder is renamed when it is complete, so that an interrupted run leaves no environment that looks
            # complete.
            keep(made, home)
    return home


def interpreter(home: Path) -> Path:
    return home / "bin" / "python"


def _make(home: Path, wanted: Sequence[str]) -> None:
    _run(_base_python(), "-m", "venv", "--without-pip", str(home))
    python = str(interpreter(home))
    _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", *wanted)
    _run(
        python,
        "-I",
        "-c",
        "import importlib.util as util, sys; sys.exit(util.find_spec('msgspec') and 'msgspec is there')",
    )


def _base_python() -> str:
    if sys.version_info[:2] == _PYTHON:
        return sys.executable
    name = f"python{_PYTHON[0]}.{_PYTHON[1]}"
    found = shutil.which(name)
    if found is None:
        raise SetUpError(f"{name} is not on the PATH: PySpark 3.5 knows no newer Python")
    return found


def _run(*command: str) -> None:
    done = subprocess.run(command, env=_environment_of_tests(), capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr).strip()
        raise SetUpError(f"{' '.join(command)} failed:\n{said}")


# ---- tests


@dataclass
class Report(TimedSteps):
    """The result for a release: the number of tests, a line for each test that did not pass, seconds per step."""

    name: str
    release: Release
    tests: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        steps = (f"{self.seconds[step]:.0f} s" for step in _STEPS)
        return _row((self.name, *self.release.pins.values(), str(self.tests), str(len(self.failures)), *steps))


_STEPS: Final = ("set-up", "run")
_COLUMNS: Final = ("release", "pyspark", "numpy", "pandas", "pyarrow", "tests", "failed", *_STEPS)


def _row(cells: Sequence[str]) -> str:
    first, *rest = cells
    return "  ".join((first.ljust(7), *(cell.rjust(7) for cell in rest)))


def try_release(name: str, matching: str | None, tell: Tell) -> Report:
    """Run the tests on the release called `name`, only those `matching` a pytest expression. Raises SetUpError."""
    release = RELEASES[name]
    report = Report(name, release)
    with report.timed("set-up"):
        home = environment(release, tell)
    tell(f"Running the tests on PySpark {release.pyspark}")
    with report.timed("run"), tempfile.TemporaryDirectory() as scratch:
        results = Path(scratch) / "results.xml"
        command = [str(interpreter(home)), "-m", "pytest", "--quiet", "-p", "no:cacheprovider", f"--junitxml={results}"]
        command += [option for each in release.noise for option in ("-W", each)]
        command += ["-k", matching] if matching else []
        done = subprocess.run(
            [*command, *TESTS], cwd=ROOT, env=_environment_of_tests(), capture_output=True, text=True, check=False
        )
        if results.is_file():
            # A skipped test counts as not passed: all tests are for every release, and a skipped one was not tried.
            report.tests, failures, skipped = read_results(results)
            report.failures += (*failures, *skipped)
        if done.returncode and not report.failures:
            report.failures.append(f"pytest ended with status {done.returncode}")
    if report.failures:
        tell((done.stdout + done.stderr).strip())
    return report


def _environment_of_tests() -> dict[str, str]:
    """The environment variables of this process, without those that refer to another Python, another Spark or other
    packages."""
    others = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "PYTHONHOME", "SPARK_HOME", "VIRTUAL_ENV")
    java = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {_QUICK_JAVA}".strip()
    return {name: value for name, value in os.environ.items() if name not in others} | {"JAVA_TOOL_OPTIONS": java}


# ---- the command


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="spark_releases.py",
        description="Run the tests that every supported PySpark must pass, each release in its own environment.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--releases", nargs="+", default=[], metavar="RELEASE", help=f"some of {', '.join(RELEASES)}")
    parser.add_argument("--all", action="store_true", help="all of these releases")
    parser.add_argument("-k", metavar="EXPRESSION", help="only tests that match (pytest's -k)")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.releases if name not in RELEASES]
    if unknown:
        parser.error(f"not a release this knows: {', '.join(unknown)}; it knows {', '.join(RELEASES)}")
    if bool(asked.releases) == asked.all:
        parser.error("name releases, or give --all")
    return asked


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    asked = _arguments(arguments)
    names = list(RELEASES) if asked.all else list(dict.fromkeys(asked.releases))
    try:
        reports = list(_reports(names, asked.k))
    except SetUpError as error:
        _tell(str(error))
        return 2
    failed = [report.name for report in reports if report.failures]
    print(f"{len(reports) - len(failed)} of {len(reports)} pass" + (f"; not {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def _reports(names: Sequence[str], matching: str | None) -> Iterator[Report]:
    print(_row(_COLUMNS), flush=True)
    for name in names:
        report = try_release(name, matching, _tell)
        print(report, flush=True)
        for failure in report.failures:
            print(textwrap.indent(failure, "  "), flush=True)
        yield report


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
