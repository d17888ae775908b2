"""`table` on a terminal: what fits, what goes to a pipe at the same time, the progress bar, and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest

from tests.cli.golden import check_golden
from tests.cli.running import run, run_on_screen
from tests.cli.segment_bytes import batch, commit, write_segment
from tests.cli.terminals import Stream, processor_seconds, run_on, running_on

pytestmark = pytest.mark.slow

TABLES = ("current_offsets", "groups", "offset_commits", "transactions")

STREAMS: tuple[Stream, ...] = ("pipe", "file", "terminal")

AT_ONCE = (
    "-c",
    "import sys; from kafka_records_tables.console import progress_bar\n"
    "from kafka_records_tables.commands.main import main\n"
    "progress_bar._AFTER = 0\n"
    "sys.exit(main())",
)
"""The command with a bar from the first byte on."""


def plain(text: str) -> str:
    """The text without colours, and without the escape sequences of the progress bar."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@pytest.fixture
def segments(topics_dir: Path) -> str:
    return str(topics_dir / "kafka-4.3" / "segments")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("columns", [80, 60, 40, 24])
def test_a_table_fits_the_terminal(segments: str, name: str, columns: int) -> None:
    seen = run_on_screen("table", name, segments, "--limit", "6", columns=columns, NO_COLOR="1")
    assert seen.status == 0
    lines = seen.out.splitlines()
    assert max(map(len, lines)) <= columns
    is_cut = re.search(";\\s--wide\\sshows\\sall\n$", seen.out)
    assert is_cut or re.match("1 of [46] ─", lines[0])
    check_golden(f"table-{name}-{columns}", seen.out)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_whole_with_wide_and_elsewhere_than_on_a_terminal(segments: str, name: str) -> None:
    arguments = ("table", name, segments, "--limit", "20")
    wide = run_on_screen(*arguments, "--wide", columns=40, NO_COLOR="1").out
    assert wide == run(*arguments).out
    check_golden(f"table-{name}", wide)


def test_a_table_of_a_process_is_the_same(segments: str) -> None:
    arguments = ("table", "groups", segments, "--limit", "20")
    there = run_on(*arguments, columns=60, stderr="pipe", NO_COLOR="1")
    assert there.screen == run_on_screen(*arguments, columns=60, NO_COLOR="1").out
    assert run_on(*arguments, stdout="file").out == run(*arguments).out


@pytest.mark.parametrize(
    ("stdout", "stderr", "name"),
    [
        # A file is written like a pipe, so the other combinations are in `make matrix`.
        *(
            pytest.param(stdout, stderr, "json", marks=pytest.mark.matrix if "file" in (stdout, stderr) else ())
            for stdout in STREAMS
            for stderr in STREAMS
        ),
        ("pipe", "terminal", "table"),
        ("terminal", "terminal", "table"),
        ("file", "terminal", "csv"),
        ("terminal", "terminal", "csv"),
    ],
)
def test_rows_and_messages_go_where_they_should(tmp_path: Path, stdout: Stream, stderr: Stream, name: str) -> None:
    """There is damage, so that both streams have output, and a progress bar."""
    spoiled = bytearray(batch(1, [commit("b", 1)]))
    spoiled[-1] ^= 1
    write_segment(tmp_path, batch(0, [commit("a", 1)]), bytes(spoiled))
    arguments = ("table", "current_offsets", str(tmp_path), "--format", name, *(["--wide"] if name == "table" else []))
    expected = run(*arguments)
    assert expected.out
    assert len(expected.err.splitlines()) == 3
    seen = run_on(*arguments, stdout=stdout, stderr=stderr, program=AT_ONCE, columns=400, NO_COLOR="1")
    assert seen.status == 1
    screen = plain(seen.screen)
    if stdout == "terminal":
        assert expected.out.split("\n")[0].strip() in screen
    else:
        assert seen.out == expected.out
    if stderr == "terminal":
        assert "%" in screen
        assert screen.endswith(expected.err)
    else:
        assert seen.err == expected.err
        assert "%" not in screen
    if "terminal" not in (stdout, stderr):
        assert screen == ""


@pytest.mark.parametrize("columns", [120, pytest.param(80, marks=pytest.mark.matrix), 40, 20])
def test_the_bar_takes_one_line_and_leaves_nothing(segments: str, columns: int) -> None:
    seen = run_on("table", "groups", segments, columns=columns, stdout="pipe", program=AT_ONCE)
    assert seen.out == run("table", "groups", segments).out
    summary = "33 rows from 850 records and 9 transaction markers in 30 files of 6 partitions\n"
    assert seen.screen.endswith(summary)
    bar = plain(seen.screen.removesuffix(summary))
    assert "\n" not in bar.strip()
    assert "100%" in bar
    assert seen.screen.count("\x1b[?25l") == seen.screen.count("\x1b[?25h") == 1


def test_a_quick_table_needs_no_bar(tmp_path: Path) -> None:
    write_segment(tmp_path, batch(0, [commit("a", 1)]))
    program = ("-c", AT_ONCE[1].replace("= 0", "= 1000"))
    seen = run_on("table", "groups", str(tmp_path), stdout="pipe", program=program)
    assert seen.screen == "1 row from 1 record and 0 transaction markers in 1 file of 1 partition\n"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two logs that take seconds to read."""
    folder = tmp_path_factory.mktemp("many")
    batches = [batch(1000 * at, [commit(f"group-{at}-{one}", one) for one in range(1000)]) for at in range(400)]
    for partition in range(2):
        write_segment(folder, *batches, folder=f"__consumer_offsets-{partition}")
    return str(folder)


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize("stderr", ["terminal", "pipe"])
def test_ctrl_c_ends_the_command_and_its_processes(many: str, processes: str, stderr: Stream) -> None:
    arguments = ("table", "current_offsets", many, "--format", "json", "--processes", processes)
    with running_on(*arguments, stdout="pipe", stderr=stderr, program=AT_ONCE) as running:
        if stderr == "terminal":
            running.wait_for("screen", "%")
        else:
            _wait_until_it_works(running.process.pid)
        children = _children(running.process.pid)
        os.killpg(running.process.pid, 2)  # Ctrl-C reaches every process of the terminal
        seen = running.finish()
    assert seen.status == 130
    assert "Traceback" not in seen.err + seen.screen
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]
    if stderr == "pipe":
        assert seen.err == ""
    else:
        assert len(children) == (2 if processes == "2" else 0)


def _wait_until_it_works(pid: int) -> None:
    """Wait until the command and its processes have used 1.5 seconds of processor time, so that it has started to
    read."""
    end = time.monotonic() + 60
    while sum(map(processor_seconds, [pid, *map(int, _children(pid))])) < 1.5:
        assert time.monotonic() < end, "the command does nothing"
        time.sleep(0.05)


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_names_reach_the_terminal_escaped(tmp_path: Path) -> None:
    hostile = "a\x1b[2Jb\nc\u202ed"
    write_segment(tmp_path, batch(0, [commit(hostile, 1)]))
    shown = run_on("table", "current_offsets", str(tmp_path), stderr="pipe", columns=200, NO_COLOR="1").screen
    assert r"a\x1b[2Jb\nc\u202ed" in shown
    assert all(line.isprintable() for line in shown.split("\n"))
    row = run_on("table", "current_offsets", str(tmp_path), "--format", "json", stdout="pipe").out
    assert json.loads(row)["group_id"] == hostile
