"""Names that are not UTF-8 or not names of logs, and things named `.log` that are not files."""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_records_engine.log.files.source_error import NOT_READABLE
from kafka_records_engine.log.format.checkpoints import CHECKPOINT, read_checkpoint
from kafka_records_engine.log.reading.segment_files import LogSourceError, find_logs, open_log, read_partition, scan
from tests.log.logs import commit, lines, read_both, write_log

FILE = f"t-0/{0:020}.log"


# -- names -------------------------------------------------------------------------------------------------------------


def test_a_path_that_is_no_utf8(tmp_path: Path) -> None:
    data = tmp_path / os.fsdecode(b"da\xffta\x1b[31m\n")
    write_log(data, {0: commit(0) + b"?" * 40, 1: commit(1)}, "t-0")
    (log,) = find_logs([data])
    log = pickle.loads(pickle.dumps(log))
    rows, records, findings = read_both(log)
    shown = f"{tmp_path}/da\\udcffta\\x1b[31m\\n/{FILE}"
    assert [row["offset"] for row in rows] == [0, 1]
    assert {record.file for record in records} == {shown, shown.replace(f"{0:020}", f"{1:020}")}
    assert [str(finding).split(": ")[0] for finding in findings] == [shown]
    assert next(stats.file for stats in scan(log)) == shown
    table = pa.Table.from_batches(read_partition(log, places=True))
    assert table["file"].to_pylist()[0] == shown
    with pytest.raises(LogSourceError) as caught:
        find_logs([data / "missing"])
    assert str(caught.value) == f"{tmp_path}/da\\udcffta\\x1b[31m\\n/missing: there is no such file or directory"


@pytest.mark.parametrize(
    "name",
    [
        "x--9999999999",
        "-9999999999",
        "-3000000000",
        "-0",
        "-",
        "x-",
        "x-2147483648",
        f"x-{'9' * 240}",
        "x-٣",
        "x-0-delete",
    ],
)
def test_folders_of_no_partition(tmp_path: Path, name: str) -> None:
    write_log(tmp_path, {0: commit(0)}, "t-0")
    folder = tmp_path / name
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(commit(0))
    assert [log.topic for log in find_logs([tmp_path])] == ["t"]
    with pytest.raises(LogSourceError) as caught:
        find_logs([folder])
    assert str(caught.value) == (
        f"{folder}: the name of this folder is not <topic>-<partition>; say which topic it holds"
    )
    (log,) = find_logs([folder], topic="x")
    assert (log.topic, log.partition, len(read_both(log)[0])) == ("x", 0, 1)


@pytest.mark.parametrize(
    ("name", "topic", "partition"),
    [("x--5", "x-", 5), ("--5", "-", 5), ("x-007", "x", 7), ("x-2147483647", "x", 2147483647), ("x-0.y-1", "x-0.y", 1)],
)
def test_folders_of_partitions_as_kafka_takes_them(tmp_path: Path, name: str, topic: str, partition: int) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / f"{0:020}.log").write_bytes(commit(0))
    for source in (tmp_path, tmp_path / name):
        assert [(log.topic, log.partition) for log in find_logs([source])] == [(topic, partition)]


# -- numbers of a checkpoint -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("t 0 " + "9" * 23, f"the offset {'9' * 23}, which is more than 9223372036854775807"),
        ("t 0 " + "1" * 5000, f"the offset {'1' * 40}… of 5000 digits, which is more than 9223372036854775807"),
        ("t 0 9223372036854775808", "the offset 9223372036854775808, which is more than 9223372036854775807"),
        ("t 9999999999 1", "the partition 9999999999, which is more than 2147483647"),
        ("t " + "2" * 5000 + " 1", f"the partition {'2' * 40}… of 5000 digits, which is more than 2147483647"),
    ],
)
def test_numbers_that_are_too_large(tmp_path: Path, line: str, detail: str) -> None:
    log = write_log(tmp_path, {0: commit(0)}, "t-0")
    (tmp_path / CHECKPOINT).write_text(f"0\n1\n{line}\n")
    rows, _, findings = read_both(log)
    assert len(rows) == 1
    assert lines(findings, tmp_path) == [f"{CHECKPOINT}: line 3 has {detail} (the log is read from its first record)"]


def test_numbers_that_are_long_and_not_large(tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_text(f"0\n1\nt {'0' * 5000} {'0' * 5000}7\n")
    assert read_checkpoint(tmp_path / CHECKPOINT) == {("t", 0): 7}


def test_a_line_of_a_checkpoint_that_is_long(tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_text(f"0\n1\n{'x' * 5000}\n")
    with pytest.raises(LogSourceError) as caught:
        read_checkpoint(tmp_path / CHECKPOINT)
    assert caught.value.detail == f"line 3 is '{'x' * 40}', not <topic> <partition> <offset>"


# -- what is not a file
# ---------------------------------------------------------------------------------------------------


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket may have some hundred bytes at most
        try:
            bound.bind(path.name)
        finally:
            os.chdir(here)


ODD = [
    pytest.param(lambda path: os.mkfifo(path), "this is a named pipe, but only regular files are read", id="fifo"),
    pytest.param(a_socket, "this is a socket, but only regular files are read", id="socket"),
    pytest.param(lambda path: path.mkdir(), "this is a directory, but only regular files are read", id="directory"),
    pytest.param(
        lambda path: path.symlink_to("/dev/zero"), "this is a device, but only regular files are read", id="device"
    ),
    pytest.param(
        lambda path: path.symlink_to("/nowhere"), "cannot be read: No such file or directory", id="dangling link"
    ),
    pytest.param(
        lambda path: path.symlink_to(path), "cannot be read: Too many levels of symbolic links", id="link to itself"
    ),
]


@pytest.mark.parametrize(("make", "what"), ODD)
def test_what_is_called_a_log_and_is_no_file(tmp_path: Path, make: Callable[[Path], object], what: str) -> None:
    write_log(tmp_path, {5: commit(5)}, "t-0")
    make(tmp_path / FILE)
    (log,) = find_logs([tmp_path])
    assert log.size == len(commit(5))
    rows, _, findings = read_both(log)
    assert [row["offset"] for row in rows] == [5]
    assert lines(findings, tmp_path) == [f"{FILE}: {what} (nothing in it is read)"]
    assert findings[0].severity == "damage"


@pytest.mark.parametrize(("make", "what"), ODD)
def test_what_is_called_a_checkpoint_and_is_no_file(tmp_path: Path, make: Callable[[Path], object], what: str) -> None:
    log = write_log(tmp_path, {0: commit(0)}, "t-0")
    make(tmp_path / CHECKPOINT)
    rows, _, findings = read_both(log)
    assert len(rows) == 1
    (said,) = lines(findings, tmp_path)
    assert said.startswith(f"{CHECKPOINT}: this ")
    assert said.endswith(" (the log is read from its first record)")


def test_a_symbolic_link_to_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(commit(0))
    (tmp_path / "t-0").mkdir()
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    (log,) = find_logs([tmp_path])
    assert [row["offset"] for row in read_both(log)[0]] == [0]
    with open_log(log) as opened:
        assert opened.size == log.size == len(commit(0))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list and read everything")
def test_a_folder_without_rights(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0)}, "t-0")
    (tmp_path / "t-0").chmod(0)
    try:
        assert find_logs([tmp_path]) == [log]
        rows, _, findings = read_both(log)
        assert (rows, [each.what for each in findings]) == ([], [NOT_READABLE])
    finally:
        (tmp_path / "t-0").chmod(0o700)
