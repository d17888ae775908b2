"""The command on a terminal: the output there, the output to a pipe or a file instead, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_records_tables.commands import command
from tests.cli.running import run, run_on_screen
from tests.cli.segment_bytes import batch, commit, write_segment
from tests.cli.terminals import Stream, run_on, running_on

pytestmark = pytest.mark.slow

HOSTILE = "a\x1b[2Jb\nc\u202ed\x85e\U000e0001f"
IN_JSON = r"a\u001B[2Jb\nc\u202Ed\u0085e\uDB40\uDC01f"
IN_TEXT = r"a\x1b[2Jb\nc\u202ed\x85e\U000e0001f"

MESSAGE = ("explain", "--message", "EndTxnMarker", "--version", "0", "0000002a")

REDIRECTED: list[Stream] = ["pipe", "file"]


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A log with a group that has a hostile name."""
    write_segment(tmp_path, batch(0, [commit(HOSTILE, 1)]))
    return str(tmp_path)


def commands(source: str) -> list[tuple[str, ...]]:
    counts = ("counts", source, "--format")
    return [("dump", source), *((*counts, name) for name in ("table", "json", "csv")), MESSAGE]


def plain(text: str) -> str:
    """The text without colours, and without the escape sequences of the progress bar."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


# -- where the result goes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "stdout"),
    [
        # The target of the output does not depend on the command or format, so the other combinations are in `make
        # matrix`.
        pytest.param(at, stdout, marks=pytest.mark.matrix if (at and stdout == "file") or at in (2, 3) else ())
        for at in range(5)
        for stdout in REDIRECTED
    ],
)
def test_a_result_goes_where_standard_output_leads_to(source: str, at: int, stdout: Stream) -> None:
    arguments = commands(source)[at]
    expected = run(*arguments)
    assert expected.out
    piped = run_on(*arguments, stdin="pipe", stdout=stdout, stderr="pipe")
    assert (piped.status, piped.out, piped.err, piped.screen) == (0, expected.out, expected.err, "")
    watched = run_on(*arguments, stdout=stdout)
    assert (watched.status, watched.out) == (0, expected.out)
    # On a busy machine, a progress bar may have appeared and disappeared before.
    assert watched.screen.endswith(expected.err)
    assert "{" not in watched.screen


@pytest.mark.parametrize("at", [0, 1, *(pytest.param(at, marks=pytest.mark.matrix) for at in (2, 3)), 4])
def test_a_result_on_a_terminal(source: str, at: int) -> None:
    arguments = commands(source)[at]
    both = run_on(*arguments)
    assert (both.status, both.out, both.err) == (0, "", "")
    rows = run_on_screen(*arguments, columns=80)
    assert (rows.status, rows.err) == (0, run(*arguments).err)
    assert plain(rows.out).strip() in plain(both.screen)
    assert rows.out


@pytest.mark.parametrize("stdout", ["file", "terminal"])
def test_a_table_goes_where_standard_output_leads_to(topics_dir: Path, stdout: Stream) -> None:
    table = ("table", "groups", str(topics_dir / "kafka-4.3-expiry" / "segments"), "--format", "json")
    seen = run_on(*table, stdout=stdout)
    rows = seen.out if stdout == "file" else plain(seen.screen)
    groups = [json.loads(line)["group_id"] for line in re.findall(r"\{.*\}", rows)]
    assert seen.status == 0
    assert groups == ["d-classic-live", "e-consumer-live"]
    summary = "2 rows from 88 records and 0 transaction markers in 4 files of 4 partitions"
    assert plain(seen.screen).rstrip().endswith(summary)
    assert ("{" in seen.screen) == (stdout == "terminal")


def test_a_bar_shows_how_far_a_dump_is_and_goes_away(tmp_path: Path) -> None:
    broken = bytearray(batch(1, [commit("a", 1)]))
    broken[-1] ^= 1
    batches = [batch(at, [commit("a", at)]) for at in range(2, 20_000)]
    path = write_segment(tmp_path, batch(0, [commit("a", 0)]), bytes(broken), *batches)
    seen = run_on("dump", str(tmp_path), stdout="file", columns=100)
    assert (seen.status, seen.out.count("\n")) == (1, 19_999)
    assert "\x1b[?25l" in seen.screen
    assert "dump" in plain(seen.screen)
    ended = seen.screen.rpartition("\x1b[2K")[2]
    assert ended == (
        "19999 records and 0 transaction markers in 1 file of 1 partition\n"
        f"1 damaged place in the files: 1 record known to be lost, {len(broken)} bytes not read\n"
    )
    assert f"{path}: byte {len(broken)}, batch at offset 1: wrong CRC: " in seen.screen
    on_terminal = run_on("dump", str(tmp_path), "--offset", "0", columns=100)
    assert "\x1b" not in on_terminal.screen


# -- hostile text ------------------------------------------------------------------------------------------------------


def test_dump_escapes_on_a_terminal_only(source: str) -> None:
    line = run_on_screen("dump", source, columns=80).out
    assert f'"group":"{IN_JSON}"' in line
    assert line.removesuffix("\n").isprintable()
    assert json.loads(line)["key"]["data"]["group"] == HOSTILE
    piped = run_on("dump", source, stdout="pipe").out
    assert json.loads(piped) == json.loads(line)
    assert "\u202ed\x85e\U000e0001f" in piped


@pytest.mark.parametrize("name", ["json", "csv", "table"])
def test_results_escape_on_a_terminal(name: str) -> None:
    """A folder's name cannot contain a hostile topic, so the test makes the rows."""
    program = (
        "import pyarrow as pa\n"
        "from kafka_records_tables.commands.written_output import Output, write_batches\n"
        f"rows = pa.record_batch({{'text': [{HOSTILE!r}]}})\n"
        f"write_batches(Output({name!r}), rows.schema, [rows])"
    )
    seen = run_on(stderr="pipe", program=("-c", program))
    assert (seen.status, seen.err) == (0, "")
    shown = {"json": f'{{"text":"{IN_JSON}"}}\n', "csv": f'text\r\n"{IN_TEXT}"\r\n'}
    if name in shown:
        assert seen.screen == shown[name]
    else:
        assert plain(seen.screen).split("\n")[2].strip() == IN_TEXT


def test_explain_shows_no_byte_of_a_text_as_it_is() -> None:
    key, _ = commit(HOSTILE, 1)
    assert key is not None
    seen = run_on("explain", "--topic", "__consumer_offsets", "--key", key.hex(), columns=200)
    assert seen.status == 0
    assert all(line.isprintable() for line in seen.screen.split("\n"))


@pytest.mark.parametrize("stream", ["terminal", "pipe"])
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("two\nlines\x1b[31m\u202e", r"two\nlines\x1b[31m\u202e"),
        (os.fsdecode(b"no utf-8 \xff"), r"no utf-8 \udcff"),
    ],
)
def test_messages_are_one_line_whatever_a_file_is_called(tmp_path: Path, name: str, shown: str, stream: Stream) -> None:
    seen = run_on("dump", str(tmp_path / name), stderr=stream)
    message = f"kafka-records: {tmp_path}/{shown}: there is no such file or directory\n"
    assert (seen.status, seen.screen + seen.err) == (2, message)
    folder = tmp_path / name / "__consumer_offsets-0"
    broken = bytearray(batch(0, [commit("a", 1)]))
    broken[-1] ^= 1
    path = write_segment(folder.parent, bytes(broken), batch(1, [commit("b", 1)]))
    seen = run_on("dump", str(folder), stdout="pipe", stderr=stream)
    assert json.loads(seen.out)["offset"] == 1
    start = f"{tmp_path}/{shown}/__consumer_offsets-0/{path.name}: byte 0, batch at offset 0: wrong CRC: "
    assert seen.status == 1
    # On a busy machine, a progress bar may be drawn before a line.
    lines = [line.rpartition("\r")[2] for line in plain(seen.screen + seen.err).split("\n")]
    assert sum(line.startswith(start) for line in lines) == 1
    assert not {"\x1b[31m", "\u202e"} & {*re.findall("\x1b\\[31m|\u202e", seen.screen + seen.err)}


def test_complaints_about_arguments_are_one_line(tmp_path: Path) -> None:
    seen = run_on("dump", "x", "--\x1b[31m\nred", stderr="pipe")
    assert seen.status == 2
    assert seen.err.splitlines()[0] == r"kafka-records dump: error: unrecognized arguments: --\x1b[31m\nred"


# -- ends --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("dump", "--help"), MESSAGE])
def test_text_that_cannot_be_written_is_no_success(arguments: tuple[str, ...]) -> None:
    seen = run_on(*arguments, stdout="full", stderr="pipe")
    assert (seen.status, seen.err) == (2, "kafka-records: standard output: No space left on device\n")


def test_a_standard_error_that_takes_nothing_costs_no_result(source: str) -> None:
    seen = run_on("dump", source, stdout="pipe", stderr="full")
    assert (seen.status, seen.out) == (0, run("dump", source).out)
    assert run_on("dump", f"{source}/gone", stdout="pipe", stderr="full").status == 2


_INTERRUPTED_IMPORT = """
import os, signal, sys
module = sys.argv.pop()
class Interrupting:
    def find_spec(self, name, *_):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from kafka_records_tables.commands.main import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "module",
    [
        "kafka_records_tables.commands.command",
        "argparse",
        "kafka_records_engine.log.reading.segment_files",
        "numpy",
        "pyarrow",
        "_json",
    ],
)
def test_an_interruption_during_the_start_prints_nothing(source: str, module: str) -> None:
    """Only Python's own start comes before the first line of the command."""
    seen = run_on("dump", source, module, program=("-c", _INTERRUPTED_IMPORT), stdout="pipe", stderr="pipe")
    assert (seen.status, seen.out, seen.err) == (130, "", "")


_INTERRUPTED_TWICE = f"""
import os, signal
usual, sent = signal.signal, []
def interrupted(number, handler):
    if handler is signal.SIG_DFL and not sent:
        sent.append(number)
        os.kill(os.getpid(), number)
    return usual(number, handler)
signal.signal = interrupted
{_INTERRUPTED_IMPORT}
"""


def test_a_second_interruption_right_behind_the_first_prints_nothing(source: str) -> None:
    """The first one comes while the command starts, the second one while it ends because of the first."""
    seen = run_on("dump", source, "argparse", program=("-c", _INTERRUPTED_TWICE), stdout="pipe", stderr="pipe")
    assert (seen.status, seen.out, seen.err) == (-signal.SIGINT, "", "")


def test_another_failure_keeps_its_traceback(source: str) -> None:
    failing = (
        "from kafka_records_tables.commands import command, main\n"
        "command.run_command = lambda _: 1 / 0\n"
        "main.main()"
    )
    seen = run_on("dump", source, program=("-c", failing), stdout="pipe", stderr="pipe")
    assert seen.status == 1
    assert seen.err.endswith("ZeroDivisionError: division by zero\n")


_SCRIPT = """\
#!{python}
# -*- coding: utf-8 -*-
import re
import sys
{before}
from kafka_records_tables.commands.main import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""
"""The start script as pip writes it."""


def test_the_installed_script_loads_three_small_modules_before_it_expects_ctrl_c(tmp_path: Path, source: str) -> None:
    script = tmp_path / "kafka-records"
    watching = (
        "import os, signal\n"
        "class Watching:\n"
        "    def find_spec(self, name, *_):\n"
        "        names = ['kafka_records_tables', 'kafka_records_tables.commands',\n"
        "                 'kafka_records_tables.commands.main']\n"
        "        if name not in names:\n"
        "            sys.meta_path.remove(self)\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Watching())"
    )
    script.write_text(_SCRIPT.format(python=sys.executable, before=watching))
    seen = run_on("dump", source, program=(str(script),), stdout="pipe", stderr="pipe")
    assert (seen.status, seen.out, seen.err) == (130, "", "")


def test_an_interruption_of_a_run_prints_nothing(tmp_path: Path) -> None:
    source = str(write_segment(tmp_path, *(batch(at, [commit("a", at)]) for at in range(20_000))))
    with running_on("dump", source, stdout="file", stderr="pipe") as running:
        running.wait_for("stdout", "}")
        running.interrupt()
        seen = running.finish()
    assert (seen.status, seen.err) == (130, "")
    assert seen.out.endswith("}\n")


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (MemoryError, command.NO_MEMORY),
        (RecursionError, command.TOO_DEEP),
    ],
)
def test_what_nobody_catches_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, source: str, failure: type[Exception], message: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr("kafka_records_tables.commands.dump_run.raw_rows", fail)
    assert run("dump", source) == (2, "", f"kafka-records: {message}\n")


def test_memory_that_runs_out(tmp_path: Path) -> None:
    path = write_segment(tmp_path, batch(0, [commit("a", 1), (b"\0\x63", bytes(120_000_000))]))
    program = f"{shlex.quote(sys.executable)} -m kafka_records_tables.commands"
    line = f"ulimit -v 700000; exec {program} dump {shlex.quote(str(path))}"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, f"kafka-records: {command.NO_MEMORY}\n")


# -- the width ---------------------------------------------------------------------------------------------------------


def test_a_table_fits_the_terminal_unless_it_is_asked_to_be_complete(source: str) -> None:
    assert plain(run_on("counts", source, columns=100).screen) == (
        "topic                record_type   record         records   tombstones   value_versions\n"
        "───────────────────────────────────────────────────────────────────────────────────────\n"
        "__consumer_offsets             1   OffsetCommit         1            0   v3: 1\n"
    )
    assert plain(run_on("counts", source, columns=64).screen) == (
        "                    record_\n"
        "topic                  type  record        records  tombstones\n"
        "──────────────────────────────────────────────────────────────\n"
        "__consumer_offsets        1  OffsetCommit        1           0\n"
        "1 column left out: value_versions; --wide shows all\n"
    )
    wide = run_on("counts", source, "--wide", columns=70)
    assert plain(wide.screen) == run("counts", source).out
    assert run_on("counts", source, columns=70, COLUMNS="100").screen == run_on("counts", source, columns=100).screen
