"""Directories that lack a part of a log: what a report shows, and what it does not conclude from it."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.missing_end import STOPPED, MissingEnd
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.report_parts import Report
from kafka_records_tables.report.report_text import in_short
from kafka_records_tables.topics import OFFSETS, SHARE_STATE, TRANSACTIONS
from tests.cli.running import run

_DATA = Path(__file__).parents[1] / "data"
_ARCHIVE = _DATA / "clusters" / "08" / "data.tar.xz"
_COORDINATORS = (OFFSETS, SHARE_STATE, TRANSACTIONS)
_LOG = f"{0:020}.log"

Directory = Callable[[], Path]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of a broker that has stopped, with healthy groups in all logs."""
    with tarfile.open(_ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = {found.parent.parent for found in tmp_path.glob("**/__consumer_offsets-0/*.log")}
    return folder


def _ends(data: Path) -> list[MissingEnd]:
    return list(Segments(data).missing_ends(_COORDINATORS))


def _kinds(report: Report) -> set[str]:
    return {each.kind for each in report.findings}


def _halved(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)


def test_nothing_is_missing_of_a_whole_directory(data: Path) -> None:
    assert _ends(data) == []


@pytest.mark.parametrize("how", ["emptied", "deleted", "without folder"])
def test_a_log_without_records_that_it_had(data: Path, how: str) -> None:
    """The checkpoints of the broker show it, and the files next to the log, if there are any."""
    folder = data / f"{OFFSETS}-0"
    if how == "emptied":
        (folder / _LOG).write_bytes(b"")
    elif how == "deleted":
        (folder / _LOG).unlink()
    else:
        for each in folder.iterdir():
            each.unlink()
        folder.rmdir()
    (end,) = _ends(data)
    has_folder = how != "without folder"
    assert (end.topic, end.partition, end.end, end.reached, end.is_certain) == (OFFSETS, 0, 0, 946, True)
    assert end.has_folder is has_folder
    report = read_report(data, processes=1)
    (found,) = (each for each in report.findings if each.kind == "log_cut")
    assert (found.level, found.partitions, found.measured["missing_offsets"]) == (Level.HIGH, (0,), 946)
    # The groups of the log, one of them a share group, are unknown, and there are no other findings about them.
    assert _kinds(report) == {"log_cut", "offsets_from_elsewhere"}
    assert not report.is_complete
    lacks, gone = f"{OFFSETS}-0 lacks its end: 946 offsets", f"There is no folder {OFFSETS}-0. The log had 946"
    assert found.problem.startswith(lacks if has_folder else gone)
    assert (found.title == "a log of a coordinator is missing") is not has_folder
    assert [(each.topic, each.offset) for each in found.evidence] == [(OFFSETS, 0) if has_folder else (None, None)]


def test_files_beside_a_log_show_it_without_checkpoints(data: Path) -> None:
    """As in a copy of only the folders."""
    for each in data.glob("*-checkpoint"):
        each.unlink()
    (data / f"{OFFSETS}-0" / _LOG).write_bytes(b"")
    (end,) = _ends(data)
    assert (end.reached, end.shown_by[-1]) == (946, f"there is a file {946:020}.snapshot")


@pytest.mark.parametrize("lacks", ["nothing", STOPPED, "recovery-point-offset-checkpoint"])
def test_an_older_file_beside_a_log_does_not_show_a_later_end(data: Path, lacks: str) -> None:
    """If the broker stopped cleanly and wrote that the log ended here. Otherwise, the log may have continued."""
    (data / f"{OFFSETS}-0" / f"{999:020}.snapshot").write_bytes(b"")
    (data / lacks).unlink(missing_ok=True)
    assert [each.reached for each in _ends(data)] == ([] if lacks == "nothing" else [999])


def test_nothing_is_concluded_from_what_groups_have_not_done_since(data: Path) -> None:
    """Three groups of the log have members, and no later commit in it."""
    _halved(data / f"{OFFSETS}-0" / _LOG)
    report = read_report(data, processes=1)
    assert _kinds(report) == {"log_cut", "offsets_from_elsewhere"}
    (found,) = (each for each in report.findings if each.kind == "log_cut")
    assert found.group_ids == ("email-notifier", "geo-lookup", "pricing-engine")
    ran = run("report", str(data), "--processes", "1", "--group", "geo-lookup")
    assert ran.status == 1
    assert f"rows are missing: a log lacks its beginning or its end: {OFFSETS} (partition 0)" in ran.err.splitlines()


@pytest.mark.parametrize(("name", "kinds"), [("conversion-1", set()), ("poison_record-1", {"crash_loop"})])
def test_what_goes_on_is_unknown_if_logs_of_groups_are_cut(tmp_path: Path, name: str, kinds: set[str]) -> None:
    """Cut at three fifths, a few seconds before the other logs end: `driver-loader`, which is healthy, has members and
    no later commit; the loop of `room-auditor` may have ended."""
    with tarfile.open(_DATA / "incidents" / name / "data.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    for file in tmp_path.glob(f"**/{OFFSETS}-*/*.log"):
        with file.open("r+b") as opened:
            opened.truncate(file.stat().st_size * 3 // 5)
    found = {each.kind: each for each in read_report(tmp_path, processes=1).findings if each.level > Level.NOTE}
    assert set(found) == {"log_cut"} | kinds
    for kind in kinds:
        assert found[kind].is_going_on is None
        assert "Whether this goes on, and what was read since, is unknown" in found[kind].problem


def test_a_log_that_was_copied_while_the_broker_wrote_is_a_note(data: Path) -> None:
    """Only a checkpoint shows it, which was written a little later."""
    folder = data / f"{OFFSETS}-0"
    (data / STOPPED).unlink(missing_ok=True)
    for each in (*folder.glob("*.snapshot"), *folder.glob("*index")):
        each.unlink()
    _halved(folder / _LOG)
    (end,) = _ends(data)
    assert not end.is_certain
    assert end.last_ms is not None
    written_s = end.last_ms / 1000 + 60
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        os.utime(data / name, (written_s, written_s))
    report = read_report(data, processes=1)
    (found,) = (each for each in report.findings if each.kind == "log_cut")
    assert (found.level, report.is_complete) == (Level.NOTE, True)


def test_logs_without_any_record_are_no_health(data: Path) -> None:
    for file in data.glob("__*/*.log"):
        file.write_bytes(b"")
    for each in (*data.glob("*-checkpoint"), *data.glob("__*/*.snapshot"), *data.glob("__*/*index")):
        each.unlink()
    report = read_report(data, processes=1)
    assert report.findings == ()
    assert in_short(report) == "there was nothing to read: the logs of coordinators have no records"


def test_a_directory_without_coordinators_has_no_report(data: Path) -> None:
    for each in [*data.glob("__[cst]*-*")]:
        if not each.name.startswith("__cluster"):
            each.rename(data.parent / f"away.{each.name}")
    with pytest.raises(LogSourceError, match="there is no log of a coordinator here"):
        read_report(data, processes=1)
