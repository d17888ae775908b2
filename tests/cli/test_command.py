"""Tests of the command as a whole: help, version, imports, pipes, prerequisites."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_tables.console import endings
from kafka_records_tables.engines.java import JavaMissing, check_java
from tests.cli.running import run
from tests.conftest import DATA_DIR

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = (
    (),
    ("table",),
    ("report",),
    ("dump",),
    ("counts",),
    ("snapshot",),
    ("delete-offsets",),
    ("abort-transaction",),
    ("explain",),
    ("fetch-metadata",),
)

SUBSCRIPTION = "00000001000474617073ffffffff0000000000000005ffff"


class Example(NamedTuple):
    """A line of the examples in a help text."""

    line: str

    @property
    def is_spark(self) -> bool:
        """Whether it needs Spark."""
        return "--engine spark" in self.line

    @property
    def is_live(self) -> bool:
        """Whether it needs a broker; tests/broker runs it."""
        return "--bootstrap" in self.line

    @property
    def is_of_a_deletion(self) -> bool:
        """Whether it only makes sense after the other examples of `delete-offsets`."""
        return "delete-offsets" in self.line or "deletable_offsets" in self.line

    @property
    def is_of_a_transaction(self) -> bool:
        """Whether it needs a hanging transaction; the tests of `abort-transaction` make one."""
        return "abort-transaction" in self.line

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments after `kafka-records`; other commands of a pipe may be missing on this machine."""
        step = next(step for step in self.line.split(" | ") if step.strip().startswith("kafka-records "))
        return tuple(shlex.split(step)[1:])


@cache
def examples() -> list[Example]:
    """All examples of all help texts."""
    texts = [run(*command, "--help").out for command in COMMANDS]
    lines = [line for text in texts for line in re.findall(r"^  (.*kafka-records .*)$", text, re.MULTILINE)]
    return [Example(line) for line in dict.fromkeys(lines)]


@pytest.fixture(scope="module")
def kept(topics_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a snapshot, which takes longer to take than to copy."""
    folder = tmp_path_factory.mktemp("examples")
    take_snapshot(Segments(topics_dir / "kafka-4.3" / "segments"), folder / "kept")
    return folder


@pytest.fixture
def here(kept: Path, topics_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A working directory with the files of the examples, under the names in the examples."""
    monkeypatch.chdir(tmp_path)
    segments = topics_dir / "kafka-4.3" / "segments"
    log = "00000000000000000000.log"
    shutil.copy(segments / "__transaction_state-0" / log, tmp_path / log)
    shutil.copytree(kept / "kept", tmp_path / "kept")
    checkpoint = "__cluster_metadata-0/00000000000000001404-0000000004.checkpoint"
    return {
        f"/var/lib/kafka/data/{checkpoint}": str(topics_dir.parent / "metadata" / "kafka-4.3" / checkpoint),
        "/var/lib/kafka/data/__consumer_offsets-12": str(segments / "__consumer_offsets-2"),
        "/var/lib/kafka/data": str(segments),
        "billing": "order-fulfilment",
        f"/backup/{log}": str(tmp_path / log),
    }


def run_example(example: Example, here: dict[str, str]) -> None:
    places = here
    if example.arguments[0] == "report" and "--group" not in example.arguments:
        # A report reads nearly all tables; with few records, it tests an example as well.
        places = {**here, "/var/lib/kafka/data": str(DATA_DIR / "topics" / "kafka-4.3-expiry" / "segments")}
    arguments = [places.get(argument, argument) for argument in example.arguments]
    ran = run(*arguments, standard_input=SUBSCRIPTION)
    assert ran.status == 0, (example.line, ran.err)
    output = arguments[arguments.index("--output") + 1] if "--output" in arguments else None
    assert Path(output).stat().st_size if output else ran.out


@pytest.mark.parametrize(
    "example", [each for each in examples() if not each.is_spark and not each.is_live], ids=lambda each: each.line
)
def test_the_examples_of_the_help_run(example: Example, here: dict[str, str]) -> None:
    run_example(example, here)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("example", [each for each in examples() if each.is_spark], ids=lambda each: each.line)
def test_the_examples_with_spark_run(example: Example, here: dict[str, str]) -> None:
    run_example(example, here)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_the_page_and_has_examples_and_the_exit_status(command: tuple[str, ...]) -> None:
    status, out, err = run(*command, "--help")
    assert (status, err) == (0, "")
    assert "\nexamples:\n  kafka-records " in out
    assert "\nexit status:\n  0  " in out
    assert max(map(len, out.splitlines())) <= 120


def test_version() -> None:
    assert re.fullmatch(r"kafka-records (\d+\.\d+\.\d+|\(not installed\))\n", run("--version").out)


def test_the_help_lists_the_tables() -> None:
    assert run("table", "--list").out in run("table", "--help").out


# -- in a process of its own -------------------------------------------------------------------------------------------


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kafka_records_tables.commands", *arguments]
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def test_a_reader_that_leaves_early_is_no_error(topics_dir: Path) -> None:
    with start("dump", str(topics_dir / "kafka-4.3" / "segments")) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith('{"topic":"__consumer_offsets","partition":0,"offset":0,')
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == ("", 0)


@pytest.mark.parametrize("redirect", [">&-", ">/dev/full"])
def test_an_output_that_takes_nothing(topics_dir: Path, redirect: str) -> None:
    source = shlex.quote(f"{topics_dir}/kafka-4.3/segments")
    command = f"{shlex.quote(sys.executable)} -m kafka_records_tables.commands dump {source}"
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} {redirect}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    reason = {
        ">&-": "standard output is closed, so the result cannot be written",
        ">/dev/full": "standard output: No space left on device",
    }[redirect]
    assert (done.returncode, done.stderr) == (2, f"kafka-records: {reason}\n")


def test_a_file_is_written_without_a_standard_output(topics_dir: Path, tmp_path: Path) -> None:
    source, path = topics_dir / "kafka-4.3" / "segments", tmp_path / "counts.csv"
    command = [sys.executable, "-m", "kafka_records_tables.commands", "counts", str(source), "--output", str(path)]
    done = subprocess.run(
        ["/bin/sh", "-c", f"{shlex.join(command)} >&- 2>&- <&-"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        check=False,
    )
    assert done.returncode == 0
    assert path.read_text().startswith("topic ")


def test_sources_stand_where_they_like(topics_dir: Path) -> None:
    one, other = (str(topics_dir / "kafka-4.3" / "segments" / f"__consumer_offsets-{number}") for number in (0, 1))
    ran = run("dump", one, other, "--topic", "__consumer_offsets")
    assert ran.status == 0
    for arguments in (
        (one, "--topic", "__consumer_offsets", other),
        ("--topic", "__consumer_offsets", one, other),
        (one, "--topic", "__consumer_offsets", "--", other),
    ):
        assert run("dump", *arguments) == ran


@pytest.mark.parametrize(
    ("arguments", "command", "message"),
    [
        (("dump", "x", "--tpoic", "y"), "dump", "unrecognized arguments: --tpoic; did you mean --topic?"),
        (
            ("dump", "x", "--format", "json"),
            "dump",
            "unrecognized arguments: --format; dump prints JSON lines and nothing else: leave it out",
        ),
        (
            ("dump", "x", "--output=y"),
            "dump",
            "unrecognized arguments: --output=y; dump writes to standard output: redirect it with > FILE",
        ),
        (
            ("snapshot", "x", "--output", "y", "--where", "offset=1"),
            "snapshot",
            "unrecognized arguments: --where; it is an option of table",
        ),
        (("table", "groups", "x", "-f", "csv"), "table", "unrecognized arguments: -f"),
        (("explain", "--message", "X", "00", "11"), "explain", "unrecognized arguments: 11"),
    ],
)
def test_a_mistake_is_one_line_and_where_help_is(arguments: tuple[str, ...], command: str, message: str) -> None:
    ran = run(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == f"kafka-records {command}: error: {message}\nkafka-records {command} --help lists the arguments\n"


def test_output_is_utf_8_whatever_the_locale_says(topics_dir: Path) -> None:
    source = str(topics_dir / "kafka-4.3" / "segments" / "__consumer_offsets-3")
    with start("dump", source, LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0") as process:
        out, _ = process.communicate()
    assert "ünï-code 🧾 bills" in out


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (("dump", "{}"), {"pyspark", "pandas", "rich"}),  # decoded records are msgspec structs
        (("counts", "{}", "--format", "csv"), {"pyspark", "pandas", "rich", "msgspec"}),
        (("table", "groups", "{}"), {"pyspark", "pandas", "rich", "msgspec"}),
        (("snapshot", "--help"), {"pyspark", "pandas", "pyarrow", "numpy", "rich", "msgspec"}),
        (("table", "--help"), {"pyspark", "pandas", "pyarrow", "numpy", "rich", "msgspec"}),
        (
            ("explain", "--message", "EndTxnMarker", "--version", "0", "00000000"),
            {"pyspark", "pandas", "pyarrow", "numpy", "rich", "msgspec"},
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_command_loads_what_it_needs(topics_dir: Path, arguments: tuple[str, ...], unwanted: set[str]) -> None:
    source = str(topics_dir / "kafka-4.3-expiry" / "segments")
    program = (
        "import sys; from kafka_records_tables.commands.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*{name.partition('.')[0] for name, module in sys.modules.items() if module}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *(argument.format(source) for argument in arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not unwanted & set(done.stderr.splitlines()[-1].split())


# -- prerequisites -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [("dump", "pyarrow", "tables"), ("counts", "google_crc32c", "tables"), ("table", "pyarrow", "tables")],
)
def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch, command: str, package: str, extra: str) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(endings, "find_spec", lambda name: None if name == package else object())
    arguments = ("table", "groups", "x") if command == "table" else (command, "x")
    message = f"{command} needs {package}, which is not installed: pip install -e '.[{extra}]'"
    assert run(*arguments) == (2, "", f"kafka-records: {message}\n")


def _java(folder: Path, says: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


def _complaint() -> str:
    with pytest.raises(JavaMissing) as caught:
        check_java()
    return str(caught.value)


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_a_java_that_will_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    _java(tmp_path, f"echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2; echo 'openjdk version \"{version}\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    check_java()


@pytest.mark.parametrize("version", ["11.0.22", "1.8.0_402", "16-ea"])
def test_a_java_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    path = _java(tmp_path, f"echo 'openjdk version \"{version}\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert _complaint() == (
        f"Spark needs Java 17 or later, but {path} is Java {version}: install a newer JDK or set JAVA_HOME."
    )


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _complaint() == (
        "Spark needs Java 17 or later, but there is no java on PATH: install a JDK or set JAVA_HOME."
    )


def test_a_java_home_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert _complaint() == (
        f"Spark needs Java 17 or later, but JAVA_HOME is {tmp_path} and has no bin/java: "
        "set it to an installed JDK or unset it."
    )


def test_a_java_that_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = _java(tmp_path, "exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert _complaint() == (
        f"Spark needs Java 17 or later, but {path} does not report its version: install a JDK or set JAVA_HOME."
    )
