"""A log that a broker rolls, cleans, renames and deletes between finding, listing, opening and reading."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.reading import _opening as opening
from kafka_records_engine.log.reading.segment_files import FoundLog, find_logs, open_log, read_partition, scan
from tests.log.logs import commit, files_of, lines, marker, read_both, write_log

FOLDER = "t-0"


def path(folder: Path, offset: int, suffix: str = "") -> Path:
    return folder / FOLDER / f"{offset:020}.log{suffix}"


def offsets_of(log: FoundLog) -> list[int]:
    return [row["offset"] for row in read_both(log)[0]]


class Meanwhile:
    """Calls a function after the folder was listed for the n-th time, counted from 1."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.listed = 0
        self.happens: dict[int, Callable[[], object]] = {}
        self.always: Callable[[int], object] = lambda listed: None
        self._original = opening.list_folder
        monkeypatch.setattr(opening, "list_folder", self._list)
        monkeypatch.setattr(time, "sleep", lambda seconds: None)

    def _list(self, folder: Place, named: Collection[str] = ()) -> opening.Listing:
        found = self._original(folder, named)
        self.listed += 1
        self.happens.pop(self.listed, lambda: None)()
        self.always(self.listed)
        return found


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    return Meanwhile(monkeypatch)


# -- between finding and reading ---------------------------------------------------------------------------------------


def test_files_merged_since_the_log_was_found(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0) + commit(1), 2: commit(2) + commit(3), 4: commit(4)}, FOLDER)
    path(tmp_path, 0).write_bytes(commit(1) + commit(3))
    path(tmp_path, 2).unlink()
    rows, _, findings = read_both(log)
    assert ([row["offset"] for row in rows], findings) == ([1, 3, 4], [])


def test_files_rolled_since_the_log_was_found(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0)}, FOLDER)
    write_log(tmp_path, {1: commit(1)}, FOLDER)
    assert offsets_of(log) == [0, 1]


@pytest.mark.parametrize("suffix", ["delete", "stray", "future", None])
def test_a_folder_that_is_gone(tmp_path: Path, suffix: str | None) -> None:
    log = write_log(tmp_path, {0: commit(0)}, FOLDER)
    if suffix:
        (tmp_path / FOLDER).rename(tmp_path / f"{FOLDER}.{'0' * 32}-{suffix}")
    else:
        shutil.rmtree(tmp_path / FOLDER)
    rows, _, findings = read_both(log)
    assert rows == []
    assert lines(findings, tmp_path) == [
        "t-0: this folder is gone: a broker that deletes or moves a partition renames it (nothing in it is read)"
    ]
    assert findings[0].severity == "damage"
    (stats,) = scan(log)
    assert (stats.file, stats.findings) == (log.folder, findings)


def test_a_data_directory_that_is_gone(tmp_path: Path) -> None:
    log = write_log(tmp_path / "data", {0: commit(0)}, FOLDER)
    shutil.rmtree(tmp_path / "data")
    assert "this folder is gone" in str(read_both(log)[2][0])


def test_a_file_that_was_asked_for_and_is_gone(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0, 7), 1: marker(1, 7, 1), 2: commit(2)}, FOLDER)
    (log,) = find_logs([path(tmp_path, offset) for offset in range(3)])
    path(tmp_path, 1).rename(path(tmp_path, 1, ".deleted"))
    rows, _, findings = read_both(log)
    assert [(row["offset"], row["transaction"]) for row in rows] == [(0, "unknown"), (2, "none")]
    assert lines(findings, tmp_path) == [
        f"t-0/{1:020}.log: this file is gone: a broker that cleans or deletes its log renames it"
        " (nothing in it is read)"
    ]
    holes: list[int] = []
    assert len(list(read_partition(log, settle=False, on_hole=holes.append))) == 1
    assert holes == [0]


def test_folders_that_vanish_while_logs_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        write_log(tmp_path, {0: commit(0)}, f"t-{number}")
    original = os.scandir

    def scandir(folder: str | Path) -> Iterator[os.DirEntry[str]]:
        if Path(folder) == tmp_path / "t-0":
            (tmp_path / "t-0").rename(tmp_path / f"t-0.{'0' * 32}-delete")
        return original(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert [log.partition for log in find_logs([tmp_path])] == [1]


# -- while the files are opened ----------------------------------------------------------------------------------------


def test_a_merge_while_the_files_are_opened(tmp_path: Path, meanwhile: Meanwhile) -> None:
    log = write_log(tmp_path, {0: commit(0) + commit(1), 2: commit(2) + commit(3), 4: commit(4)}, FOLDER)

    def merge() -> None:
        path(tmp_path, 2).rename(path(tmp_path, 2, ".deleted"))
        path(tmp_path, 0, ".cleaned").write_bytes(commit(1) + commit(3))
        path(tmp_path, 0, ".cleaned").replace(path(tmp_path, 0))

    meanwhile.happens[1] = merge
    rows = [row["offset"] for batch in read_partition(log) for row in batch.to_pylist()]
    assert rows == [1, 3, 4]
    assert meanwhile.listed == 4


def test_a_file_replaced_under_its_name_while_the_files_are_opened(tmp_path: Path, meanwhile: Meanwhile) -> None:
    log = write_log(tmp_path, {0: commit(0) + commit(1), 2: commit(2)}, FOLDER)

    def clean() -> None:
        path(tmp_path, 0, ".cleaned").write_bytes(commit(1))
        path(tmp_path, 0, ".cleaned").replace(path(tmp_path, 0))

    meanwhile.happens[1] = clean
    assert [row["offset"] for batch in read_partition(log) for row in batch.to_pylist()] == [1, 2]
    assert meanwhile.listed == 4


def test_a_list_that_misses_a_file_under_way_from_name_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_log(tmp_path, {0: commit(0), 1: commit(1)}, FOLDER)
    original, listed = opening.list_folder, []

    def list_folder(folder: Place, named: Collection[str] = ()) -> opening.Listing:
        listed.append(folder)
        found = original(folder)
        return {name: inode for name, inode in found.items() if len(listed) > 1 or not name.startswith(f"{0:020}")}

    monkeypatch.setattr(opening, "list_folder", list_folder)
    assert files_of(log) == [f"{0:020}.log", f"{1:020}.log"]
    assert len(listed) == 4


def test_a_rolled_file_is_of_a_later_moment(tmp_path: Path, meanwhile: Meanwhile) -> None:
    log = write_log(tmp_path, {0: commit(0)}, FOLDER)
    meanwhile.happens[1] = lambda: write_log(tmp_path, {1: commit(1)}, FOLDER)
    assert files_of(log) == [f"{0:020}.log"]
    assert meanwhile.listed == 2


def test_what_the_cleaner_writes_is_no_change(tmp_path: Path, meanwhile: Meanwhile) -> None:
    log = write_log(tmp_path, {0: commit(0)}, FOLDER)
    meanwhile.happens[1] = lambda: path(tmp_path, 0, ".cleaned").write_bytes(b"")
    assert offsets_of(log) == [0]


def test_a_folder_that_is_renamed_while_its_files_are_opened(tmp_path: Path, meanwhile: Meanwhile) -> None:
    log = write_log(tmp_path, {0: commit(0)}, FOLDER)
    meanwhile.happens[1] = lambda: (tmp_path / FOLDER).rename(tmp_path / f"{FOLDER}.{'0' * 32}-delete")
    assert [str(finding).split(": ")[1] for finding in read_both(log)[2]] == ["this folder is gone"]


def test_a_log_that_never_stands_still(tmp_path: Path, meanwhile: Meanwhile) -> None:
    log = write_log(tmp_path, {0: commit(0)}, FOLDER)

    def churn(listed: int) -> None:
        path(tmp_path, 100 * listed).rename(path(tmp_path, 100 * listed + 100)) if listed else None

    path(tmp_path, 0).rename(path(tmp_path, 100))
    meanwhile.always = churn
    with open_log(log) as opened:
        assert opened.segments == ()
        (finding,) = opened.findings
    assert str(finding) == (
        f"{log.folder}: its files changed 60 times in a row while they were opened (nothing in it is read; try again)"
    )
    assert finding.severity == "damage"
    assert meanwhile.listed == 2 * opening.TRIES


def test_a_file_system_that_gives_other_inodes_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_log(tmp_path, {0: commit(0)}, FOLDER)
    original, listed = opening.list_folder, []

    def list_folder(folder: Place, named: Collection[str] = ()) -> opening.Listing:
        listed.append(folder)
        return dict.fromkeys(original(folder), len(listed))

    monkeypatch.setattr(opening, "list_folder", list_folder)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    assert files_of(log) == [f"{0:020}.log"]


# -- while the files are read ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settle", [True, False])
def test_files_that_vanish_and_change_while_they_are_read(tmp_path: Path, settle: bool) -> None:
    log = write_log(tmp_path, {0: commit(0, 7), 1: commit(1), 2: marker(2, 7, 1)}, FOLDER)
    findings: list[Any] = []
    rows = read_partition(log, settle=settle, batch_rows=None, on_finding=findings.append)
    assert [row["offset"] for row in next(rows).to_pylist()] == [0]
    path(tmp_path, 0).unlink()
    path(tmp_path, 1).rename(path(tmp_path, 1, ".deleted"))
    path(tmp_path, 0).write_bytes(b"another")
    path(tmp_path, 3).write_bytes(commit(3))
    with path(tmp_path, 2).open("ab") as file:
        file.write(commit(3))
    assert [row["offset"] for batch in rows for row in batch.to_pylist()] == [1, 2]
    assert findings == []


def test_what_is_appended_later_is_not_read(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0) + commit(1, 7)}, FOLDER)
    with open_log(log) as opened:
        with path(tmp_path, 0).open("ab") as file:
            file.write(commit(2) + marker(3, 7, 1))
        for _ in range(2):
            rows = [row for batch in read_partition(opened) for row in batch.to_pylist()]
            assert [(row["offset"], row["transaction"]) for row in rows] == [(0, "none"), (1, "open")]
    assert offsets_of(log) == [0, 1, 2, 3]


@pytest.mark.parametrize("left", [0, 50, 71, 100])
def test_a_file_that_is_cut_short_while_it_is_read(tmp_path: Path, left: int) -> None:
    log = write_log(tmp_path, {0: commit(0) + commit(1)}, FOLDER)
    with open_log(log) as opened:
        os.truncate(path(tmp_path, 0), left)
        findings: list[Any] = []
        rows = [row for batch in read_partition(opened, on_finding=findings.append) for row in batch.to_pylist()]
    assert [row["offset"] for row in rows] == [0][: left // 71]
    assert [finding.severity for finding in findings] == (["note"] if left % 71 else [])


def test_files_are_closed_in_the_end(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0), 1: commit(1)}, FOLDER)
    before = len(os.listdir("/proc/self/fd"))
    for rows in (read_partition(log, batch_rows=1), read_partition(log, settle=False, batch_rows=1)):
        assert isinstance(rows, Generator)
        next(rows)
        assert len(os.listdir("/proc/self/fd")) == before + 2
        rows.close()
        assert len(os.listdir("/proc/self/fd")) == before
    assert len(list(read_partition(log))) == 1
    assert len(os.listdir("/proc/self/fd")) == before


def test_more_files_than_a_process_may_open(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    log = write_log(tmp_path, {offset: commit(offset) for offset in range(100)}, FOLDER)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        for spare in (20, 99, 100, 101):
            resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + spare, limits[1]))
            assert files_of(log) == [f"{offset:020}.log" for offset in range(100)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
