"""The local engine: the same rows with any number of processes, from any program, and without remaining processes or
files."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.findings import INCOMPLETE_HISTORY, Finding
from kafka_records_engine.log.reading.segment_files import find_logs, read_partition
from kafka_records_tables import TABLES, read_table, stream_table
from kafka_records_tables.engines.local import WorkerEnded
from tests.tables.engine_logs import BadLog, BadLogs
from tests.tables.names import CAPTURED, USUAL
from tests.variants import mostly

pytestmark = pytest.mark.slow

_KINDS = tuple(table for name, table in CAPTURED if name == "kafka-4.3")
MOSTLY = mostly(CAPTURED, lambda name, table: name == "kafka-4.3" and table in _KINDS[::3])
"""Every third table over the log with all kinds of records; the others are in `make matrix`."""


@pytest.mark.parametrize(
    ("name", "table"),
    mostly(
        (case for case in CAPTURED if case[0] == "kafka-4.3" or case == ("kafka-2.8", "transactions")),
        lambda _, table: table in (*USUAL, "transactions"),
    ),
)
def test_two_processes_answer_as_one(topics_dir: Path, name: str, table: str) -> None:
    one, two = (read_table(table, topics_dir / name / "segments", processes=count) for count in (1, 2))

    assert one.table.num_rows > 1
    assert two.table.equals(one.table)
    assert (two.findings, two.counts) == (one.findings, one.counts)


@pytest.mark.parametrize(("name", "table"), MOSTLY)
def test_rows_in_any_order_and_each_twice_answer_as_the_files(topics_dir: Path, name: str, table: str) -> None:
    folder = topics_dir / name / "segments"
    logs = find_logs([str(folder)], TABLES[table].topic)
    batches = [batch for log in logs for batch in read_partition(log, settle=False, batch_rows=100)]
    chance = Random(name + table)
    rows = pa.Table.from_batches(batches)
    order = [*range(rows.num_rows), *range(rows.num_rows)]
    chance.shuffle(order)

    expected = read_table(table, folder)
    for given in (pa.Table.from_batches(batches[::-1]), rows.take(order)):
        found = read_table(table, given)
        assert found.table.equals(expected.table)
        assert _of_records(found.findings) == _of_records(expected.findings)
        assert (found.counts.records, found.counts.markers) == (expected.counts.records, expected.counts.markers)


@pytest.mark.parametrize(("name", "table"), MOSTLY)
def test_small_files_in_any_order_answer_as_large_ones(topics_dir: Path, tmp_path: Path, name: str, table: str) -> None:
    folder = topics_dir / name / "segments"
    files = []
    for log in find_logs([str(folder)], TABLES[table].topic):
        small = tmp_path / f"{log.topic}-{log.partition}"
        small.mkdir()
        for path in (folder / small.name).glob("*.log"):
            files += _in_parts(path, small)
    Random(name).shuffle(files)

    expected, found = read_table(table, folder), read_table(table, files)

    assert len(files) > 2 * expected.counts.files
    assert found.table.equals(expected.table)
    # Files alone do not show the log start.
    assert found.counts.records == expected.counts.records + expected.counts.below_log_start
    assert found.is_complete
    of_start = INCOMPLETE_HISTORY if expected.counts.below_log_start else None
    found_in_large = [finding for finding in expected.findings if finding.reason != of_start]
    assert _of_records(found.findings) == _of_records(found_in_large)


def _of_records(findings: Iterable[Finding]) -> list[str]:
    """The findings about records, without those about files."""
    return [str(finding) for finding in findings if finding.file is None]


def _in_parts(path: Path, folder: Path) -> list[str]:
    """The batches of a file in files of at most five."""
    content, parts, start = path.read_bytes(), [], 0
    while start + 12 <= len(content) and any(content[start : start + 12]):
        end, first = start, int.from_bytes(content[start : start + 8], "big")
        for _ in range(5):
            if end + 12 <= len(content) and any(content[end : end + 12]):
                end += 12 + int.from_bytes(content[end + 8 : end + 12], "big")
        part = folder / f"{first:020}.log"
        part.write_bytes(content[start:end])
        parts.append(str(part))
        start = end
    return parts


# -- from wherever it is called ----------------------------------------------------------------------------------------

READS = """
import json, os, sys, threading
from kafka_records_tables import read_table

def read():
    return read_table("groups", {folder!r}, processes=2).table.num_rows

print("once")  # a process that ran this script again would say so again
found = {{"script": read()}}

def in_thread():
    found["thread"] = read()

thread = threading.Thread(target=in_thread)
thread.start()
thread.join()

cell = {{"__name__": "__main__"}}
exec("from kafka_records_tables import read_table\\ncell = read_table('groups', folder, processes=2)",
     dict(cell, folder={folder!r}), cell)
found["cell"] = cell["cell"].table.num_rows

os.chdir({elsewhere!r})
found["another directory"] = read()
print(json.dumps(found))
"""

DAEMON = """
import multiprocessing
from kafka_records_tables import read_table

def read(answers):
    answers.put(read_table("groups", {folder!r}, processes=2).table.num_rows)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=read, args=(answers,), daemon=True)
    process.start()
    print(answers.get(timeout=60))
    process.join()
"""


def _run(script: Path, text: str) -> str:
    script.write_text(text, encoding="utf-8")
    ran = subprocess.run([sys.executable, script.name], cwd=script.parent, capture_output=True, text=True, timeout=120)
    assert (ran.stderr, ran.returncode) == ("", 0)
    return ran.stdout


def test_from_a_script_without_a_guard_a_thread_a_notebook_and_another_directory(
    topics_dir: Path, tmp_path: Path
) -> None:
    folder = str(topics_dir / "kafka-4.3" / "segments")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    # Modules of the current directory must not be imported as ours.
    (elsewhere / "json.py").write_text("raise SystemExit('the wrong json')", encoding="utf-8")
    (elsewhere / "numpy.py").write_text("raise SystemExit('the wrong numpy')", encoding="utf-8")
    expected = read_table("groups", folder).table.num_rows

    first, answer = _run(tmp_path / "script.py", READS.format(folder=folder, elsewhere=str(elsewhere))).splitlines()

    assert first == "once"
    assert json.loads(answer) == dict.fromkeys(("script", "thread", "cell", "another directory"), expected)


def test_from_a_daemon_process(topics_dir: Path, tmp_path: Path) -> None:
    folder = str(topics_dir / "kafka-4.3" / "segments")
    expected = read_table("groups", folder).table.num_rows

    assert _run(tmp_path / "daemon.py", DAEMON.format(folder=folder)) == f"{expected}\n"


@pytest.mark.matrix
def test_with_modules_found_by_a_relative_path(topics_dir: Path, tmp_path: Path) -> None:
    """PYTHONPATH=. and a program that changes its directory before it reads."""
    folder = str(topics_dir / "kafka-4.3" / "segments")
    root = Path(__file__).resolve().parents[2]
    program = (
        f"import os; from kafka_records_tables import read_table; os.chdir({str(tmp_path)!r})\n"
        f"print(read_table('groups', {folder!r}, processes=2).table.num_rows)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["generated", "generator", "spark_udfs"])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert int(ran.stdout) == read_table("groups", folder).table.num_rows


# -- processes that end badly ------------------------------------------------------------------------------------------


def _bad(what: str, folder: Path, **options: Any) -> BadLogs:
    return BadLogs(tuple(BadLog(what if number else "ends", str(folder), number, **options) for number in range(3)))


def _processes(folder: Path) -> list[int]:
    """The processes that have read, without this one."""
    found = [int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")]
    return [process for process in found if process != os.getpid()]


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_process_that_is_killed(tmp_path: Path) -> None:
    with pytest.raises(WorkerEnded) as failure:
        read_table("current_offsets", _bad("dies", tmp_path), processes=2)

    assert str(failure.value) == (
        f"the process that was reading {failure.value.log} was ended by signal 9. Signal 9 usually means that the "
        f"machine ran out of memory: processes=1 reads with one process, group=… reads less"
    )
    assert failure.value.log in ("__consumer_offsets-1", "__consumer_offsets-2")
    assert not any(map(_alive, _processes(tmp_path)))


def test_a_process_that_ends_by_itself(tmp_path: Path) -> None:
    with pytest.raises(WorkerEnded) as failure:
        read_table("current_offsets", _bad("exits", tmp_path), processes=2)

    assert str(failure.value).startswith(f"the process that was reading {failure.value.log} ended with status 3. ")
    assert not any(map(_alive, _processes(tmp_path)))


def test_an_error_that_cannot_be_pickled_comes_as_its_text(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as failure:
        read_table("current_offsets", _bad("raises", tmp_path), processes=2)

    assert str(failure.value) == "NotPortableError: this and that"
    assert not any(map(_alive, _processes(tmp_path)))


def test_what_a_process_prints_is_not_taken_for_an_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = read_table("current_offsets", _bad("prints", tmp_path), processes=2)

    assert result.table["group_id"].to_pylist() == ["g0", "g1", "g2"]
    assert len(set(_processes(tmp_path))) == 2
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "what a library says on standard output\n" * 2)


def test_what_a_process_waits_for_is_logged_by_the_one_that_asks(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Remove handlers of the command, which other tests of this process may have run: it prints these messages too.
    monkeypatch.setattr(logging.getLogger("kafka_records_engine.sources"), "handlers", [])
    read_table("current_offsets", _bad("waits", tmp_path), processes=2)
    logged = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert logged == [("kafka_records_engine.sources.far", "WARNING", "__consumer_offsets: waiting")] * 2
    assert capfd.readouterr().err == ""


def test_rows_that_nobody_wants_any_more_end_the_processes(tmp_path: Path) -> None:
    with stream_table("offset_commits", _bad("goes on", tmp_path, rows=100), processes=2) as stream:
        next(stream)
        assert any(map(_alive, _processes(tmp_path)))
    assert not any(map(_alive, _processes(tmp_path)))


def test_a_stream_that_is_forgotten_ends_the_processes(tmp_path: Path) -> None:
    stream = stream_table("offset_commits", _bad("goes on", tmp_path, rows=100), processes=2)
    next(stream)
    del stream
    assert not any(map(_alive, _processes(tmp_path)))


def test_an_interrupt_ends_the_processes(tmp_path: Path) -> None:
    def interrupted(done: int, total: int) -> None:
        if len(_processes(tmp_path)) == 2:
            raise KeyboardInterrupt

    # Other tests of this process may have left threads of their own: servers, Spark.
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        read_table("current_offsets", _bad("goes on", tmp_path), processes=2, on_progress=interrupted)

    assert not any(map(_alive, _processes(tmp_path)))
    assert not set(threading.enumerate()) - before


def test_a_process_that_is_stopped_by_ctrl_c_on_a_terminal_leaves_nothing_behind(tmp_path: Path) -> None:
    """Ctrl-C goes to every process of the terminal's group at once."""
    program = (
        "import sys\n"
        "from tests.tables.engine_logs import BadLog, BadLogs\n"
        "from kafka_records_tables import read_table\n"
        f"logs = tuple(BadLog('goes on', {str(tmp_path)!r}, number) for number in range(2))\n"
        "try:\n"
        "    read_table('current_offsets', BadLogs(logs), processes=2)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(7)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(place for place in sys.path if place)}
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True, env=environment)
    end = time.monotonic() + 60
    while len(list(tmp_path.glob("pid-*"))) < 2:
        assert time.monotonic() < end
        time.sleep(0.05)

    os.killpg(process.pid, 2)

    assert process.wait(30) == 7
    assert not any(map(_alive, _processes(tmp_path)))
