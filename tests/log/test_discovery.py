"""Finding log partitions: what counts as one, in which order, and the message if there is none."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.log.reading import segment_files
from kafka_records_engine.log.reading.segment_files import FoundLog, LogSourceError, find_logs, open_log
from kafka_records_engine.sources.abilities import search_of
from kafka_records_engine.sources.segment_files import Segments
from tests.log.logs import CAPTURES, TOPICS, commit, read_both, write_log

GIVE = "give the data directory of a broker (log.dirs), a folder in it, or a .log file"


def refusal(*sources: Path, topic: str | None = None) -> str:
    with pytest.raises(LogSourceError) as caught:
        find_logs(sources, topic)
    return str(caught.value)


# -- what is found -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capture", CAPTURES)
def test_captured_data_directories(capture: str) -> None:
    directory = TOPICS / capture / "segments"
    logs = find_logs([directory])
    assert {f"{log.topic}-{log.partition}" for log in logs} == {
        each.name for each in directory.iterdir() if each.is_dir()
    }
    assert [(log.topic, log.partition) for log in logs] == sorted((log.topic, log.partition) for log in logs)
    for log in logs:
        present = sorted((directory / f"{log.topic}-{log.partition}").glob("*.log"))
        assert log.size == sum(path.stat().st_size for path in present)
        with open_log(log) as opened:
            assert [Path(segment.path) for segment in opened.segments] == present
            assert [segment.base_offset for segment in opened.segments] == [int(path.stem) for path in present]
            assert (opened.findings, opened.ends_early, opened.is_part) == ((), False, False)
            assert opened.size == log.size


def test_log_start_of_the_capture() -> None:
    starts = {}
    for log in find_logs([TOPICS / "kafka-4.3" / "segments"]):
        with open_log(log) as opened:
            starts[log.topic, log.partition] = opened.log_start
    assert {place: start for place, start in starts.items() if start} == {("__share_group_state", 1): 11}


def test_one_topic_of_a_data_directory() -> None:
    logs = find_logs([TOPICS / "kafka-4.3" / "segments"], topic="__share_group_state")
    assert [(log.topic, log.partition) for log in logs] == [("__share_group_state", number) for number in range(3)]


def test_within_a_search_the_logs_are_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path, {0: b""}, "t-0")
    searches: list[str | None] = []

    def counted(paths: Any, topic: str | None, *more: Any) -> list[FoundLog]:
        searches.append(topic)
        return find_logs(paths, topic, *more)

    monkeypatch.setattr(segment_files, "find_logs", counted)
    source = Segments(tmp_path)

    def partitions(topic: str) -> list[int]:
        return [each.partition for each in source.partitions(topic)]

    with search_of(source):
        assert source.topics() == ["t"]
        write_log(tmp_path, {0: b""}, "t-1")
        with search_of(source):
            assert partitions("t") == [0]
        assert partitions("t") == [0]
        assert searches == [None]
        with pytest.raises(LogSourceError, match="there is no log of topic other here, only logs of t"):
            source.partitions("other")
    assert partitions("t") == [0, 1]


def test_a_partition_folder_is_read_once_however_it_is_named(tmp_path: Path) -> None:
    there, linked = tmp_path / "there", tmp_path / "linked"
    write_log(there, {0: b""}, "t-0")
    linked.mkdir()
    (linked / "t-0").symlink_to(there / "t-0")
    (tmp_path / "again").symlink_to(there)
    for names in ([there, linked], [linked, there], [tmp_path / "again", there], [there / "t-0", there]):
        assert len(find_logs(names)) == 1


def test_partitions_are_sorted_by_number(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        write_log(tmp_path, {0: b""}, f"t-{number}")
    assert [log.partition for log in find_logs([tmp_path])] == [1, 9, 10]


def test_sources_are_named_twice_without_harm(tmp_path: Path) -> None:
    write_log(tmp_path, {0: b"", 5: b""}, "t-0")
    (log,) = find_logs([tmp_path, tmp_path / "t-0", tmp_path / "t-0" / f"{5:020}.log"])
    assert log.files is None


def test_partition_folder_and_its_relative_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path, {0: b""}, "some.topic-7")
    monkeypatch.chdir(tmp_path / "some.topic-7")
    (log,) = find_logs([Path()])
    assert (log.topic, log.partition) == ("some.topic", 7)
    with open_log(log) as opened:
        assert [segment.path for segment in opened.segments] == [f"{0:020}.log"]


def test_single_files(tmp_path: Path) -> None:
    write_log(tmp_path, {0: b"", 5: b"", 9: b""}, "t-0")
    names = [tmp_path / "t-0" / f"{offset:020}.log" for offset in (5, 0)]
    (log,) = find_logs(names)
    with open_log(log) as opened:
        assert [segment.base_offset for segment in opened.segments] == [0, 5]
        assert (opened.is_part, opened.ends_early) == (True, True)
    (log,) = find_logs([tmp_path / "t-0" / f"{9:020}.log"])
    with open_log(log) as opened:
        assert (opened.is_part, opened.ends_early) == (True, False)


def test_named_topic_for_a_place_that_does_not_tell(tmp_path: Path) -> None:
    file = tmp_path / "saved.log"
    file.write_bytes(commit(0))
    (log,) = find_logs([file], topic="__consumer_offsets")
    assert (log.topic, log.partition) == ("__consumer_offsets", 0)
    with open_log(log) as opened:
        assert [segment.base_offset for segment in opened.segments] == [None]
    rows, _, findings = read_both(log)
    assert (len(rows), findings) == (1, [])


def test_everything_else_in_there_is_ignored(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0)}, "t-0")
    ignored = ["index", "timeindex", "txnindex", "snapshot", "log.deleted", "log.cleaned", "index.swap"]
    for suffix in ignored:
        (tmp_path / "t-0" / f"{0:020}.{suffix}").write_bytes(b"?")
    for name in ("leader-epoch-checkpoint", "partition.metadata"):
        (tmp_path / "t-0" / name).write_bytes(b"?")
    for name in (f"t-1.{'0' * 32}-delete", f"t-2.{'0' * 32}-future", "no-number", "t-4"):
        (tmp_path / name).mkdir()
    (tmp_path / f"t-1.{'0' * 32}-delete" / f"{0:020}.log").write_bytes(b"?")
    (tmp_path / "server.log").write_bytes(b"started")
    assert find_logs([tmp_path]) == [log]


def test_partitions_travel_to_workers() -> None:
    for log in find_logs([TOPICS / "kafka-4.3" / "segments"]):
        assert pickle.loads(pickle.dumps(log)) == log


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    place = tmp_path / "missing"
    assert refusal(place) == f"{place}: there is no such file or directory"


def test_an_empty_directory(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: the directory is empty: {GIVE}"


def test_a_directory_without_segments(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.index").write_bytes(b"")
    expected = "there is no segment file in this directory, nor in a folder <topic>-<partition> below it"
    assert refusal(tmp_path) == f"{tmp_path}: {expected}"
    assert refusal(tmp_path / "t-0") == f"{tmp_path}/t-0: {expected}"


def test_logs_of_programs_beside_a_data_directory(tmp_path: Path) -> None:
    """They are no segment files, so the directory is named instead."""
    (tmp_path / "data" / "t-0").mkdir(parents=True)
    (tmp_path / "data" / "t-0" / f"{0:020}.log").write_bytes(b"")
    (tmp_path / "broker.log").write_bytes(b"[2026-01-31] INFO started\n")
    assert refusal(tmp_path).endswith(f"; give the folder that contains logs: {tmp_path}/data")


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    file = tmp_path / f"{0:020}.index"
    file.write_bytes(b"")
    assert refusal(file) == f"{file}: this is not a .log file: {GIVE}"


def test_a_folder_that_does_not_tell_its_topic(tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / f"{0:020}.log").write_bytes(b"")
    assert refusal(tmp_path / "backup") == (
        f"{tmp_path}/backup: the name of this folder is not <topic>-<partition>; say which topic it holds"
    )


def test_a_topic_that_is_not_there(tmp_path: Path) -> None:
    for name in ("a-0", "a-1", "b-0"):
        write_log(tmp_path, {0: b""}, name)
    assert refusal(tmp_path, topic="c") == f"{tmp_path}: there is no log of topic c here, only logs of a, b"


def test_one_partition_in_two_places(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_log(tmp_path / name, {0: b""}, "t-3")
    assert refusal(tmp_path / "one", tmp_path / "two") == (
        f"{tmp_path}/one/t-3, {tmp_path}/two/t-3: both contain t-3; read one of them at a time"
    )


# -- what cannot be read -----------------------------------------------------------------------------------------------


def forbid(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make a folder unreadable, as for a user without rights. Tests may run as root, for whom file modes have no
    effect."""
    original = os.scandir

    def scandir(path: str | Path) -> Iterator[os.DirEntry[str]]:
        if Path(path) == folder:
            raise PermissionError(13, "Permission denied")
        return original(path)

    monkeypatch.setattr(os, "scandir", scandir)


def test_a_partition_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (0, 1):
        write_log(tmp_path, {0: commit(0)}, f"t-{number}")
    forbid(monkeypatch, tmp_path / "t-0")
    forbidden, other = find_logs([tmp_path])
    what = f"{tmp_path}/t-0: permission denied: run this as a user who may read it (nothing in it is read)"
    with open_log(forbidden) as opened:
        assert ([str(each) for each in opened.findings], opened.segments) == ([what], ())
    assert len(read_both(other)[0]) == 1
    assert find_logs([tmp_path / "t-0"]) == [forbidden]


def test_of_several_sources_those_with_nothing_to_read_are_findings(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0)}, "t-0")
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    others = [tmp_path / name for name in ("gone", "empty", "notes.txt", "gone-*")]
    assert find_logs([*others, tmp_path / "t-0"]) == [log]
    (found,) = find_logs([*others, tmp_path / "t-0"])
    with open_log(pickle.loads(pickle.dumps(found))) as opened:
        assert [(str(each), each.severity, each.topic) for each in opened.findings] == [
            (f"{tmp_path}/gone: there is no such file or directory (nothing in it is read)", "damage", None),
            (
                f"{tmp_path}/empty: the directory is empty: {GIVE} (nothing in it is read)",
                "damage",
                None,
            ),
            (
                f"{tmp_path}/notes.txt: this is not a .log file: {GIVE} (nothing in it is read)",
                "damage",
                None,
            ),
            (f"{tmp_path}/gone-*: nothing matches this pattern (nothing in it is read)", "damage", None),
        ]
        assert len(opened.segments) == 1
    assert refusal(*others) == f"{tmp_path}/gone: there is no such file or directory"
    assert refusal(*others, tmp_path / "t-0", topic="u").endswith("there is no log of topic u here, only logs of t")


def test_a_data_directory_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid(monkeypatch, tmp_path)
    assert refusal(tmp_path) == f"{tmp_path}: this cannot be read: Permission denied"


def test_sources_that_are_no_places() -> None:
    with pytest.raises(
        LogSourceError, match=r"^'': the name of a source must not be empty: write \. for the current directory$"
    ):
        find_logs([""])
    assert refusal(Path("/dev/null")) == "/dev/null: this is neither a file nor a directory"
