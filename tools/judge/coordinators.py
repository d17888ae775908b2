"""The program that drives Kafka's coordinators. It is compiled once, and gets commands on its standard input.

Its sources are in `java/`; subfolders have the code for Kafka's classes since or before a release. It needs the jars of
`tools.broker`. The compiled program is in the cache folder, outside the repository, with one folder for each state of
its sources.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kafka_records_codegen.evolution.kafka_releases import cache_folder, keep, release_order
from tools.broker import broker_jars, jars_by_maven, java
from tools.java_compiler import compile_java
from tools.kafka_releases import LATEST, WHOLE, WITHOUT_TOOLS

SOURCES: Final = Path(__file__).with_name("java")

_BOUND: Final = re.compile(r"(since|before)_(\d+)_(\d+)")

_JVM: Final = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
# The log of a coordinator is about the requests of random clients, and writing it would take most of the time.
_QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"


class CoordinatorsError(Exception):
    """The program failed. The text has the command that it got, and its last output."""


def program(tell: Callable[[str], None] = lambda line: None) -> list[str]:
    """The command that starts the program. Add the last argument, the folder in which it works.

    Raises MissingPrerequisite without Java or Maven, FetchError if Maven fails, and CompileError.
    """
    return command("judge.Main", tell)


def command(
    main: str,
    tell: Callable[[str], None] = lambda line: None,
    *,
    sources: Sequence[Path] = (),
    places: Sequence[Path] = (),
    options: Sequence[str] = (),
) -> list[str]:
    """The command that starts a class of the program. Add its arguments.

    `sources` and `places` (of the class path) are added to those of the judge, `options` to those of its JVM. Raises as
    `program`.
    """
    every_place = [broker_jars(tell) / "*", *(each / "*" for each in _connect_jars(tell)), *places]
    of_release = [source for source in SOURCES.glob("*_*/*.java") if is_for(source.parent.name, LATEST)]
    every_source = sorted([*SOURCES.glob("*.java"), *of_release, *sources])
    state = hashlib.sha256(LATEST.encode())
    for source in every_source:
        state.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    classes = cache_folder() / "judge" / state.hexdigest()[:16]
    if not classes.is_dir():
        tell("Compiling the judge (once)")
        classes.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=classes.parent) as scratch:
            compile_java("the judge", every_source, every_place, Path(scratch) / "classes")
            keep(Path(scratch) / "classes", classes)
    return [java(), *_JVM, _QUIET, *options, "-cp", ":".join(map(str, (classes, *every_place))), main]


def is_for(folder: str, release: str) -> bool:
    """Whether the sources of a folder are for a release of Kafka: `since_4_2_before_4_3` is for 4.2.0 and 4.2.1."""
    return all(
        (release_order(release) >= release_order(f"{major}.{minor}.0")) == (word == "since")
        for word, major, minor in _BOUND.findall(folder)
    )


def _connect_jars(tell: Callable[[str], None]) -> list[Path]:
    """The jars of Connect's own classes, which write the data of its workers. If Maven has none, those of an older
    release."""
    if LATEST not in WITHOUT_TOOLS:
        return []
    wanted = [("org.apache.kafka", module, WHOLE) for module in ("connect-runtime", "connect-api")]
    return [jars_by_maven(cache_folder() / "connect" / WHOLE, f"Kafka Connect {WHOLE}", wanted, tell, alone=True)]


class Coordinators:
    """The running program, which `with` starts. It writes to `folder`."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.folder = folder
        self._command = [*command, str(folder)]
        self._process: subprocess.Popen[str] | None = None
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._errors = self._open.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace"))
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            # A signal that a terminal sends to stop the run must not end this program in the middle of an answer.
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process is not None
        # The program ends when its input ends.
        self._process.communicate()
        self._open.close()

    def write(self, seed: int, features: str = "") -> str:
        """Write the history of a seed with its answers, and the same for its share state, if there is any.

        `features` has what may happen in it, as in the header of a history, instead of what the seed draws.

        Returns the name of the history. The name of the history of share state ends with `-share`. The same seed gives
        the same files.
        """
        self._ask(f"write {seed} {features}".strip())
        return f"{seed:04d}"

    def log(self, seed: int, features: str = "") -> str:
        """Write the history of a seed as `write` does, but without answers. Returns its name."""
        self._ask(f"log {seed} {features}".strip())
        return f"{seed:04d}"

    def answer(self, name: str) -> None:
        """Write the answers to the questions in the header of the existing log with this name."""
        self._ask(f"answer {name}")

    def _ask(self, what: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        if self._process.stdout.readline() != what + "\n":
            self._process.wait()
            self._errors.seek(0)
            raise CoordinatorsError(f"The judge failed at `{what}`:\n{self._errors.read().strip()}")
